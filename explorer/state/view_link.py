"""Links to what the window shows: place, runs, step, data, selected pairs, filter and table, as `contrastive-explorer://…`.

A link is data of whoever wrote it: it chooses what is looked at in the open workspace, and starts, opens and changes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct

from explorer.state.selection import Looking, Rows
from trainer.config.split_key import SplitKey
from trainer.errors import UserError

SCHEME: Final = "contrastive-explorer"
LONGEST: Final = 16_000
MOST_PAIRS: Final = 1_000
"""More selected pairs do not fit into a link."""
_NUMBER: Final = re.compile(r"\d{1,15}")


class ViewLink(Struct, frozen=True):
    """What a link shows."""

    # Fields of `Looking`; of a link that names a place alone, the place: runs, step and pairs stay.
    values: dict[str, Any]
    filter: str = ""
    # Names of further columns of the table of runs; None leaves those that are there.
    columns: tuple[str, ...] | None = None
    group: str | None = None  # What the table is grouped by; None leaves it.
    chart: str = ""  # Name of the open chart of the view; empty leaves the one that is open.


def link_to(now: Looking, text: str = "", table: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the link to a selection; more than `MOST_PAIRS` pairs are left out.

    Args:
        table: The columns of the table of runs between blanks, and its group, as `columns` and `group`; the open chart,
            as `chart`.
    """
    fields: dict[str, str] = {"view": now.view}
    for name, value in (("a", now.run_a), ("b", now.run_b), ("step", now.step), ("step_b", now.step_b)):
        if value is not None:
            fields[name] = str(value)
    if now.dataset is not None:
        fields |= {"dataset": now.dataset.dataset, "split": now.dataset.split}
    if 0 < len(now.pairs) <= MOST_PAIRS:
        fields["pairs"] = ",".join(map(str, now.pairs))
    if text:
        fields["filter"] = text
    fields |= table
    return f"{SCHEME}://open?{urlencode(fields)}"


def read_link(text: str) -> ViewLink:
    """Return what a link shows.

    Raises:
        UserError: It is none, or one of its values cannot be.
    """
    text = text.strip()
    if len(text) > LONGEST:
        raise UserError(f"The link has more than {LONGEST:,} letters. Copy it again.")
    try:
        parts = urlsplit(text)
        fields = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), max_num_fields=20)
        )
    except ValueError as error:
        raise UserError(f"The link cannot be read: {error}. Copy it again.") from error
    if parts.scheme != SCHEME or parts.netloc != "open":
        raise UserError(f"{text[:60]!r} is not a link to a view: it begins with {SCHEME}://open?")
    values: dict[str, Any] = {"view": fields.get("view", "")}
    if {"a", "b", "step", "step_b", "dataset", "pairs"}.isdisjoint(fields):
        return ViewLink(values, *_table(fields))
    for key, name in (("a", "run_a"), ("b", "run_b"), ("step", "step"), ("step_b", "step_b")):
        values[name] = _number(key, fields[key]) if key in fields else None
    has_dataset = "dataset" in fields and "split" in fields
    values["dataset"] = SplitKey(fields["dataset"][:200], fields["split"][:200]) if has_dataset else None
    numbers = [part for part in fields.get("pairs", "").split(",") if part]
    if len(numbers) > MOST_PAIRS:
        raise UserError(f"The link selects more than {MOST_PAIRS:,} pairs. Copy it again.")
    values["pairs"] = Rows(_number("pairs", part) for part in numbers)
    return ViewLink(values, *_table(fields))


def _table(fields: Mapping[str, str]) -> tuple[str, tuple[str, ...] | None, str | None, str]:
    columns = tuple(fields["columns"].split()) if "columns" in fields else None
    return fields.get("filter", ""), columns, fields.get("group"), fields.get("chart", "")


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise UserError(f"The link's {name} {text[:40]!r} is not a number. Copy it again.")
    return int(text)
