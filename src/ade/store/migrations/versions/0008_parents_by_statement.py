"""Check on PostgreSQL that the parents of new requests exist once for a statement, not for a row.

Frozen: what is written here stays as it was released, whatever `ade.store.schema` becomes.
"""

from alembic import op

revision = "0008_parents_by_statement"
down_revision = "0007_short_executions"

FOREIGN_KEYS = (
    "fk_requests_workspace_id",
    "fk_requests_workspace_id_build_id",
    "fk_requests_workspace_id_configuration_id",
    "fk_requests_workspace_id_document_id",
)
CHECKED = """
CREATE FUNCTION requests_have_parents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT FROM added WHERE
      ((SELECT true FROM workspaces WHERE workspaces.id = added.workspace_id) IS NULL)
      OR (added.build_id IS NOT NULL AND (SELECT true FROM builds
        WHERE builds.workspace_id = added.workspace_id
        AND builds.id = added.build_id) IS NULL)
      OR (added.configuration_id IS NOT NULL AND (SELECT true FROM configurations
        WHERE configurations.workspace_id = added.workspace_id
        AND configurations.id = added.configuration_id) IS NULL)
      OR (added.document_id IS NOT NULL AND (SELECT true FROM documents
        WHERE documents.workspace_id = added.workspace_id
        AND documents.id = added.document_id) IS NULL)
  ) THEN
    RAISE foreign_key_violation USING MESSAGE =
      'a row of requests names a parent that does not exist, against a foreign key';
  END IF;
  RETURN NULL;
END $$
"""
CHECKING = """
CREATE TRIGGER requests_have_parents AFTER INSERT ON requests
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION requests_have_parents()
"""


def upgrade() -> None:
    """Put a trigger in place of the foreign keys; the other databases check them cheaply."""
    if op.get_context().dialect.name != "postgresql":
        return
    for name in FOREIGN_KEYS:
        op.drop_constraint(op.f(name), "requests", type_="foreignkey")
    op.execute(CHECKED)
    op.execute(CHECKING)
