"""Name pieces of work in fewer characters: each new one changes a page of its own.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import hashlib
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0007_short_executions"
down_revision = "0006_shorter_shape"

ID = sa.String(36).with_variant(UUID(as_uuid=False), "postgresql")
WORK_ID = {
    "sqlite": "work_id(workspace_id, execution_key)",
    "postgresql": (
        "left(encode(sha256(convert_to(workspace_id || ' ' || execution_key, 'UTF8')), 'hex'), 32)"
        "::uuid"
    ),
    "mssql": (
        "LOWER(CONVERT(CHAR(32), HASHBYTES('SHA2_256',"
        " CAST(CONCAT(workspace_id, ' ', execution_key) AS VARCHAR(200))), 2))"
    ),
}


def upgrade() -> None:
    """Make the table anew, with a short key in place of the workspace and the long one."""
    dialect = op.get_context().dialect.name
    if dialect == "sqlite":
        connection: Any = op.get_bind().connection.driver_connection
        connection.create_function("work_id", 2, _work_id)
    # Who still writes to the old table waits, and then does not find it: nothing is lost unseen.
    if dialect == "postgresql":
        op.execute("LOCK TABLE executions IN ACCESS EXCLUSIVE MODE")
    shorter = f"SELECT {WORK_ID[dialect]} AS work_id, job_id"
    if dialect == "mssql":
        locked = "executions WITH (TABLOCKX, HOLDLOCK)"
        op.execute(f"{shorter} INTO executions_kept FROM {locked}")
    else:
        op.execute(f"CREATE TABLE executions_kept AS {shorter} FROM executions")
    op.drop_table("executions")
    op.create_table(
        "executions",
        sa.Column("work_id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("work_id", name=op.f("pk_executions")),
        sqlite_with_rowid=False,
    )
    # In the order of the new key: pages are filled one after the other.
    kept = "SELECT work_id, job_id FROM executions_kept ORDER BY work_id"
    op.execute(f"INSERT INTO executions (work_id, job_id) {kept}")
    op.drop_table("executions_kept")


def _work_id(workspace_id: str, execution_key: str) -> str:
    return hashlib.sha256(f"{workspace_id} {execution_key}".encode()).hexdigest()[:32]
