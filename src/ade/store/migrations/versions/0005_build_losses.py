"""Remember how often a build's holder fell silent, so that it is not begun without end.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005_build_losses"
down_revision = "0004_workspace_queue"


def upgrade() -> None:
    """Add the count of lost leases to builds."""
    op.add_column(
        "builds", sa.Column("losses", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
