"""The one kind of error that is the world's fault, not ours: shown to the person as a sentence."""


class UserError(Exception):
    """Something the person can mend; the message names the cause and the next step.

    Every room derives one small exception from it. Whatever is not a Problem is a bug and keeps its traceback.
    """
