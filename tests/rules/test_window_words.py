"""The words of the window: one format of percentages, and none of the phrases that a reader did not understand."""

import ast
import functools
import re
import runpy
from pathlib import Path

import pytest

from tests.rules.sources import nodes

ROOT = Path(__file__).parents[2]
WINDOW_STRINGS = runpy.run_path(str(ROOT / "packaging" / "window_strings.py"))
files, is_shown = WINDOW_STRINGS["files"], WINDOW_STRINGS["is_shown"]
PLACES = ("explorer", *(f"trainer/{room}" for room in ("charts", "config", "experiments", "render_html", "render_mpl")))
OLD = (
    "in all 2 arms",
    "they decide nothing",
    "hardly ever",
    "Curves of arms",
    "Equal within",
    "How many processes share",
    "settles in a few clusters",
    "part of larger ones",
    "an epoch, from",
    "drawn by path",
    "neighbors among",
    "First of the table",
    "A against B",
    "both ranks in A",
    "the odd one",
    "near is alike",
    "updates end in",
    "Its effective number",
    "Path on the PCA",
    "How well they separate",
    "Its own caption",
    "how much gradient is left",
    "Classes of the data",
    "measurements stored",
    "was measured while",
    "where the difference is real",
    "the questions both answered",
    "predicts the best of your labels",
    "of the training, and best",
    "match stays apart",
    "never implement",
    "Pull of the merge",
    "Gradient that InfoNCE keeps",
    "leave to chance",
    "decoder is on its way",
    "one of B like that of A",
    "Takes the concept out",
    "holds too little",
    "scenes are drawn here",
    "look only",
    "Max parallel runs",
    "Branch off",
    "verdicts by",
    "means of the captions",
    "Class prompts",
    "Effective number",
    "Dataset classes",
    " dataset",
)
"""Phrases of the table of wording, each replaced by a standard term."""
_PERCENT = re.compile(r"[\d}…]%(?!\w)|:\.\d%")


@functools.cache
def strings(source: str) -> tuple[tuple[int, str], ...]:
    return tuple(WINDOW_STRINGS["strings"](nodes(source)))


def wrong_percent(source: str) -> list[int]:
    """Return the lines of texts that format a percentage without a space before the sign."""
    lines = []
    for node in nodes(source):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant))
            if spec.endswith("%"):
                lines.append(node.lineno)
    lines += [
        line for line, text in strings(source) if _PERCENT.search(text) and not text.startswith("Words, and terms")
    ]
    return sorted({*lines})


@pytest.mark.parametrize("place", PLACES)
def test_percentages_have_one_format(place: str):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files((place,))
        for line in wrong_percent(path.read_text(encoding="utf-8"))
        if path.name not in ALLOWED
    ]
    assert wrong == []


ALLOWED = ("report.py",)
"""Style sheets, whose widths are percentages of CSS."""


@pytest.mark.parametrize("place", PLACES)
def test_old_phrases_do_not_come_back(place: str):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {phrase}"
        for path in files((place,))
        for line, text in strings(path.read_text(encoding="utf-8"))
        for phrase in OLD
        if phrase in text
    ]
    assert wrong == []


def test_planted_texts_are_found():
    assert wrong_percent('def f(x):\n    return f"{x:.0%} of all"\n') == [2]
    assert wrong_percent('def f(x):\n    return "25% of all"\n') == [2]
    assert wrong_percent('def f(x):\n    return f"{100 * x:.1f} % of all"\n') == []


def test_the_list_holds_what_is_seen_and_no_names():
    source = '"""Doc."""\nA = QLabel("Two words", objectName="not seen")\nB = f"{n:,} runs"\nC = "a_key"\n'
    assert [text for _, text in sorted(strings(source))] == ["Two words", "{…} runs"]
    assert is_shown("Best R@1")
    assert not is_shown("QPushButton[role='x'] {")
