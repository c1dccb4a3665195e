"""Panels of one chart side by side, which share no axis and no table: each is of other data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from trainer.charts.marks import ImageRow, Mark, NumberTable, Panel, XYPlot, run_tone


def panels_beside(panels: Sequence[Panel], names: Sequence[str], indices: Sequence[Sequence[int]]) -> Panel:
    """Return one panel with the marks of all; marks of one kind are in one row.

    Args:
        panels: Of the same chart.
        names: What each is about, which names a plot where several panels have it.
        indices: The indices of the runs of each panel; 0 is A.
    """
    often = Counter(mark.key for panel in panels for mark in panel.marks)
    rows: list[tuple[Mark, ...]] = []
    for same_row in zip_longest(*(panel.rows for panel in panels), fillvalue=()):
        for same_kind in zip_longest(*same_row):
            marks = tuple(
                _of_part(mark, number, names[number], indices[number]) if often[mark.key] > 1 else mark
                for number, mark in enumerate(same_kind)
                if mark is not None and (number == 0 or not _is_same(mark, same_kind[0]))
            )
            # A row of pictures is as wide as the page.
            rows += [(mark,) for mark in marks] if any(isinstance(mark, ImageRow) for mark in marks) else [marks]
    of_tables = _distinct(panel.notes[: panel.table_notes] for panel in panels)
    return replace(
        panels[0],
        rows=tuple(rows),
        head=_distinct(panel.head for panel in panels),
        notes=_distinct((of_tables, *(panel.notes for panel in panels))),
        table_notes=len(of_tables),
        warnings=_distinct(panel.warnings for panel in panels),
        commands=_distinct(panel.commands for panel in panels),
    )


def _of_part(mark: Mark, number: int, name: str, indices: Sequence[int]) -> Mark:
    """Return the mark of one of the panels under a key of its own, with the name or the badges of its runs."""
    mark = replace(mark, key=f"{mark.key}-{number}" if number else mark.key)
    if isinstance(mark, XYPlot):
        return replace(mark, title=f"{mark.title}, {name}")
    if isinstance(mark, NumberTable) and mark.badges:
        return replace(mark, first=indices[0], tones=tuple(map(run_tone, indices)))
    return mark


def _is_same(mark: Mark, first: Mark | None) -> bool:
    """Return whether it is a table that is about no run: published numbers, for example."""
    return isinstance(mark, NumberTable) and not mark.badges and mark == first


def _distinct(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
