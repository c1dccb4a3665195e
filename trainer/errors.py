"""Errors caused by input or environment, not by a bug: shown to the user as a sentence."""


class UserError(Exception):
    """An error that the user can fix; the message names the cause and the next step.

    Every room derives one small exception from it. Whatever is not a UserError is a bug and keeps its traceback.
    """
