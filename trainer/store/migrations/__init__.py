"""Alembic's migrations, run by `trainer.store.upgrade` inside its one transaction."""
