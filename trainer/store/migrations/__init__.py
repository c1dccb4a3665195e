"""Alembic migrations, run by `trainer.store.upgrade` in a single transaction."""
