"""What Alembic runs for each command; `ade.store.migrate` hands it a connection and a transaction.

Without a connection (`as_sql`) it writes the statements out instead of running them.
"""

from alembic import context

from ade.store.schema import metadata

handed = context.config.attributes
if context.is_offline_mode():
    context.configure(dialect_name=handed["dialect_name"], target_metadata=metadata)
    with context.begin_transaction():
        context.run_migrations()
else:
    context.configure(
        connection=handed["connection"],
        target_metadata=metadata,
        on_version_apply=handed.get("on_version_apply"),
    )
    context.run_migrations()
