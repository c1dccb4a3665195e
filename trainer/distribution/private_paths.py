"""Shortens paths in what is given away: where files lie on a computer tells who its user is."""

from __future__ import annotations

import contextlib
import contextvars
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final

_ABSOLUTE: Final = re.compile(r"(?:~[\w.-]*)?[\\/]{1,2}[^\\/\s]|[A-Za-z]:[\\/]")
_INSIDE: Final = re.compile(r"""(?<![\w:/\\.~])(?:~[\w.-]*[\\/]|[A-Za-z]:[\\/]|/(?=[^/\s]))(?:[^\s"'<>|,;=]*[\\/])?""")


class PrivatePaths:
    """Shortens absolute paths to what lies in known folders, and all others to their names.

    Args:
        roots: Folders whose inner paths stay as they are.
    """

    def __init__(self, roots: Iterable[PurePath] = ()) -> None:
        folders = {str(root).rstrip("\\/") for root in roots if len(root.parts) > 1}
        self._roots = sorted(folders, key=len, reverse=True)

    def value(self, text: str) -> str:
        """Return a text that may be a path; one that is none stays, as a caption with strokes does."""
        if not _ABSOLUTE.match(text) or "\n" in text:
            return text
        for root in self._roots:
            if text.startswith((f"{root}/", f"{root}\\")):
                return text[len(root) + 1 :]
        path = PureWindowsPath(text) if "\\" in text or text[1:2] == ":" else PurePosixPath(text)
        return path.name if len(path.parts) > 1 else text

    def sentence(self, text: str) -> str:
        """Return a text in which paths may stand between words, as in a command or a reason."""
        if " " not in text and (path := self.value(text)) != text:
            return path
        for root in self._roots:
            text = text.replace(f"{root}/", "").replace(f"{root}\\", "")
        return _INSIDE.sub("", text)

    def document(self, document: Any) -> Any:
        """Return a JSON or TOML document, every text of it a sentence."""
        if isinstance(document, dict):
            return {name: self.document(value) for name, value in document.items()}
        if isinstance(document, list | tuple):
            return [self.document(value) for value in document]
        return self.sentence(document) if isinstance(document, str) else document


_CURRENT: contextvars.ContextVar[PrivatePaths | None] = contextvars.ContextVar("shortener", default=None)


@contextlib.contextmanager
def shortened(shortener: PrivatePaths) -> Iterator[None]:
    """Shorten the paths in all figures and tables that are written inside of this context."""
    token = _CURRENT.set(shortener)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> PrivatePaths | None:
    """Return the shortener of this context; None: paths stay."""
    return _CURRENT.get()
