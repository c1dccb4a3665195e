"""${message}."""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """From schema ${down_revision} to ${up_revision}."""
    ${upgrades if upgrades else "pass"}
