"""Errors of published models."""

from trainer.errors import UserError


class PretrainedError(UserError):
    """A model that cannot be downloaded or opened; the message names it, the cause and the next step."""
