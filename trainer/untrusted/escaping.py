"""Escape untrusted texts for spreadsheets, Markdown and desktops, which could interpret them."""

from __future__ import annotations

import math
import re
from typing import Any, Final

_DANGEROUS: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with, half or full width (OWASP, CSV injection)."""
_SPACES: Final = " \u00a0\u3000\ufeff\u200b"
"""What some spreadsheets take off before they look."""
_MARKS: Final = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|<>&$"})
_LINKS: Final = re.compile(r"(?<!\w)[@#](?=\w)|@(?=[\w-]+\.\w)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
"""What GitHub makes a mention or a link of, also where a backslash stands before it."""


def cell(value: Any) -> Any:
    """Return a CSV cell: a text that a spreadsheet would run as a formula gets an apostrophe; numbers stay."""
    if isinstance(value, str):
        # A lone carriage return would end the row for most readers: Python's writer does not quote it.
        plain = value.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        dangerous = value.lstrip(_SPACES).startswith(_DANGEROUS)
        return f"'{plain}" if dangerous else plain
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return value


def markdown(text: str) -> str:
    """Return a text for a table cell in GitHub Markdown, shown literally: it mentions nobody and links nowhere."""
    return _LINKS.sub("\\g<0>\N{ZERO WIDTH SPACE}", " ".join(text.split())).translate(_MARKS)


def spoken(text: str) -> str:
    """Return a text for a desktop notification, whose markup some desktops interpret."""
    return text.replace("<", "‹").replace(">", "›").replace("&", "＆")
