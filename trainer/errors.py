"""Errors caused by input or environment, not by a bug: shown to the user as a sentence."""


class UserError(Exception):
    """An error that the user can fix; the message names the cause and the next step.

    A room derives a class of its own only where somebody handles it apart. Whatever is not a UserError is a bug and
    keeps its traceback.
    """


class NotYetError(UserError):
    """What is asked for comes by itself, later; `title` says in a few words what is not there yet."""

    title = "No result yet"
