"""Filters of runs as text: `objective:cloob beta>8 tag:paper -is:failed`.

A filter is words and terms between blanks, all of which a run must fit; a minus before one turns it round, quotation
marks keep blanks together. A word is looked for in name, status, objective, data, tags, experiment and arm. A term is
FIELD and a value: `:` contains (a number equals, a tag is the whole tag), `=` is, `!=` is not, `<` `<=` `>` `>=` of
numbers. FIELD is a fact of the run (`name`, `tag`, `experiment`, `step`, `hours` ...), a field of its configuration
(`objective.beta`, or without its section where that is enough: `beta`), or a logged or evaluated number
(`image_to_text_R@1>40%`). What a run does not have, it does not fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from trainer.errors import UserError
from trainer.store.rows import RunRow

MOST_LETTERS: Final = 2_000
MOST_TERMS: Final = 50
_TERM: Final = re.compile(r"(-?)([A-Za-z_][\w./@+-]*)(<=|>=|!=|:|=|<|>)(.*)", re.DOTALL)
_SPLIT: Final = re.compile(r'(?:[^\s"]|"[^"]*")+')


class Term(Struct, frozen=True):
    """One condition; without a field it is a word."""

    field: str
    operator: str
    value: str
    negated: bool = False

    @property
    def number(self) -> float:
        """The value as a number, `40%` as 0.4; NaN if it is none."""
        return number_of(self.value)


@dataclass(frozen=True)
class RunFilter:
    """A parsed filter; the empty one fits every run that is not archived."""

    text: str = ""  # As it was typed.
    terms: tuple[Term, ...] = ()  # All must fit.

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that no row has: of configurations and numbers, which are read for it."""
        named = (term.field for term in self.terms if term.field and term.field not in FACTS)
        return tuple(dict.fromkeys(named))

    @property
    def shows_archived(self) -> bool:
        """Whether it asks for archived runs; otherwise none of them fits."""
        return any((term.field, term.value.casefold()) == ("is", "archived") for term in self.terms)

    def fits(self, run: RunRow, values: Mapping[str, Any] | None = None) -> bool:
        """Return whether a run fits.

        Args:
            values: Of `fields`, as `run_values` reads them; a missing one fits nothing.
        """
        if run.archived_at is not None and not self.shows_archived:
            return False
        return all(_holds(term, run, values or {}) != term.negated for term in self.terms)


def parse(text: str) -> RunFilter:
    """Return the filter that a text says.

    Raises:
        UserError: A quotation mark is not closed, a value is missing, or one that must be a number is none.
    """
    if len(text) > MOST_LETTERS:
        raise UserError(f"The filter has more than {MOST_LETTERS:,} letters. Shorten it.")
    if text.count('"') % 2:
        raise UserError('The filter has a quotation mark that is not closed. Write name:"two words".')
    parts = _SPLIT.findall(text)
    if len(parts) > MOST_TERMS:
        raise UserError(f"The filter has more than {MOST_TERMS} conditions. Leave some out.")
    return RunFilter(text, tuple(map(_term, parts)))


def number_of(text: str) -> float:
    """Return the number a text says, `40%` as 0.4; NaN if it says none."""
    plain, percent = text.removesuffix("%").strip(), text.endswith("%")
    try:
        return float(plain) / (100 if percent else 1)
    except ValueError:
        return math.nan


def names_fields(names: Iterable[str], name_asked: str) -> str | None:
    """Return the one of the names that is meant: the whole name, or its only last part; None if there is none."""
    known_names = list(names)
    if name_asked in known_names:
        return name_asked
    ends = [name for name in known_names if name.endswith((f".{name_asked}", f"/{name_asked}"))]
    return ends[0] if len(ends) == 1 else None


def _term(part: str) -> Term:
    plain = part.replace('"', "")
    match = None if part.startswith(('"', '-"')) else _TERM.fullmatch(plain)
    if match is None:
        negated = plain.startswith("-") and len(plain) > 1
        return Term("", ":", plain[1:] if negated else plain, negated)
    minus, field, operator, value = match.groups()
    field = _SYNONYMS.get(field.casefold(), field)
    if not value:
        raise UserError(f"{part}: a value is missing. Write {field}{operator}VALUE.")
    term = Term(field, operator, value, minus == "-")
    if operator in ("<", "<=", ">", ">=") and math.isnan(term.number):
        raise UserError(f"{part}: {value} is not a number. Write {field}{operator}8, or {field}{operator}40%.")
    return term


def _holds(term: Term, run: RunRow, values: Mapping[str, Any]) -> bool:
    if not term.field:
        return term.value.casefold() in words_of(run)
    if term.field == "is":
        return _state(run, term.value.casefold()) != (term.operator == "!=")
    value = FACTS[term.field](run) if term.field in FACTS else values.get(term.field)
    if value is None:
        return False
    if isinstance(value, tuple):
        contained = term.value.casefold() in (text.casefold() for text in value)
        return contained != (term.operator == "!=")
    return _compares(term, value)


def _compares(term: Term, value: Any) -> bool:
    if isinstance(value, bool):
        same = str(value).lower() == term.value.casefold()
        return same != (term.operator == "!=")
    if isinstance(value, int | float):
        number = term.number
        if term.operator in (":", "="):
            return math.isclose(value, number, rel_tol=1e-9)
        if term.operator == "!=":
            return not math.isclose(value, number, rel_tol=1e-9)
        return _ORDER[term.operator](float(value), number)
    text, expected = str(value).casefold(), term.value.casefold()
    if term.operator == ":":
        return expected in text
    if term.operator in ("=", "!="):
        return (text == expected) == (term.operator == "=")
    return _ORDER[term.operator](number_of(text), term.number)


def words_of(run: RunRow) -> str:
    """Return what a plain word is looked for in, folded to lower case."""
    parts = (run.name, run.label, run.status, run.objective, run.data, run.tags, run.experiment, run.arm)
    return " ".join(parts).casefold()


def _state(run: RunRow, word: str) -> bool:
    return {
        "archived": run.archived_at is not None,
        "active": run.active,
        "ended": not run.active,
        "noted": bool(run.note),
        "tagged": bool(run.tags),
    }.get(word, run.status == word)


_ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

FACTS: Final[dict[str, Callable[[RunRow], Any]]] = {
    name: attrgetter(name)
    for name in (
        *("id", "name", "label", "status", "is", "objective", "data", "preset", "device", "experiment", "arm", "tag"),
        *("note", "reason", "step", "best", "last", "hours", "parent"),
    )
} | {
    "is": lambda run: run.status,
    "experiment": lambda run: run.experiment or None,
    "arm": lambda run: run.arm or None,
    "tag": lambda run: run.tag_list,
    "note": lambda run: run.note or None,
    "reason": lambda run: run.reason or None,
    "hours": lambda run: run.duration_s and run.duration_s / 3600,
}
"""Name -> what a row says; None where it has none."""
_SYNONYMS: Final = {"tags": "tag", "run": "id"}
