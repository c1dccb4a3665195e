"""Import Qt without PySide's own `import` statement, which would slow down every import after it."""

from __future__ import annotations

import builtins


def import_qt() -> None:
    """Import PySide, and give back Python's own `import` where PySide came first here.

    PySide's would read the source of each module that is imported from then on and search it for "PySide6", for the
    case that one asks for snake_case names by `from __feature__ import`; none here does. It is 5 % of a start.
    """
    python_import = builtins.__import__
    import PySide6.QtCore  # noqa: F401

    builtins.__import__ = python_import
