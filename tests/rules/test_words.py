"""Texts for users are plain English: the worst patterns of earlier texts do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = {
    "is no X": re.compile(r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer\b|one\b|more\b)[a-z]"),
    "anew": re.compile(r"\banew\b"),
    "beside": re.compile(r"\bbeside\b"),
    "under the glass": re.compile(r"under the glass"),
    "parted": re.compile(r"\bparted\b"),
    "deaf": re.compile(r"\bdeaf\b"),
    "looked at": re.compile(r"\blooked at\b"),
    "ordinary file": re.compile(r"\bordinary file\b"),
    "begin anew": re.compile(r"\bbegins? anew\b"),
    "waited for": re.compile(r"\bwaited for\b"),
    "at most so many": re.compile(r"\bso many (?:pairs|labels|groups|rows)\b"),
}


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module with their lines, without docstrings."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def found(source: str) -> list[tuple[int, str]]:
    return [(line, name) for line, text in texts(source) for name, pattern in BANNED.items() if pattern.search(text)]


@pytest.mark.parametrize("folder", ["explorer", "trainer"])
def test_texts_are_plain(folder: str):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name in found(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "x is no ordinary file",
        "These are no pairs.",
        "Open this tab again to begin it anew.",
        "A batch under the glass.",
        "It cannot be parted into cells.",
        "The trainer is waited for until it stops.",
        "a .txt beside it",
        "at most so many pairs",
    ],
)
def test_a_planted_text_is_found(text: str):
    assert found(f"def f():\n    return {text!r}\n")


@pytest.mark.parametrize("text", ["There is no run yet.", "It is no longer there.", "no one", "next to it"])
def test_good_texts_pass(text: str):
    assert not found(f"def f():\n    return {text!r}\n")
