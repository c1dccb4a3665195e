"""What goes wrong with models of others."""

from trainer.errors import UserError


class PretrainedError(UserError):
    """A model that cannot be had or opened; the message names it, the cause and the next step."""
