"""Alembic's environment: runs migrations on the given connection and transaction."""

from alembic import context

from trainer.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
