"""Errors caused by input or environment, not by a bug: shown to the user as a sentence."""

from __future__ import annotations

import os
from typing import Final


class UserError(Exception):
    """An error that the user can fix; the message names the cause and the next step.

    A room derives a class of its own only where somebody handles it apart. Whatever is not a UserError is a bug and
    keeps its traceback.
    """


class NotYetError(UserError):
    """What is asked for comes by itself, later; `title` says in a few words what is not there yet."""

    title = "No result yet"


BUG: Final = "An unexpected error stopped this. Retry; if it fails again, copy the details into a report."


def reason_words(error: BaseException | str) -> str:
    """Return what an error means to a person, cause before next step; what nobody wrote for them is called a bug."""
    if isinstance(error, UserError | str) and str(error):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Close other programs, or ask for less at once."
    if not isinstance(error, OSError) or error.errno is None:
        return BUG
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "A file"
    if isinstance(error, FileNotFoundError):
        return f"{name} is missing. Put it back, or choose other data; then retry."
    if isinstance(error, PermissionError):
        return f"{name} may not be read or written. Change its rights; then retry."
    return f"{name} cannot be read or written: {os.strerror(error.errno)}. Check its disk; then retry."
