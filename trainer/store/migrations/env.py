"""How Alembic runs our migrations: on the connection and in the transaction it is handed."""

from alembic import context

from trainer.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
