"""Texts for users are plain English: the worst patterns of earlier texts do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import nodes

ROOT = Path(__file__).parents[2]
BANNED = {
    "is no X": re.compile(r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer\b|one\b|more\b)[\w{.]"),
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
    "goes on": re.compile(r"\b[Gg]o(?:es)? on\b"),
    "not on one scale": re.compile(r"\bon one scale\b"),
    "process of its own": re.compile(r"\b(?:process|program|plot|name) of (?:its|their) own\b"),
    "turned onto": re.compile(r"\bturned (?:onto|to face)\b"),
    "asked by": re.compile(r"\basked by\b|\b(?:image|text|query|run)s? asks?\b"),
    "runs answer": re.compile(r"\b(?:run|model|checkpoint)s? (?:answers?|sees?|says?)\b"),
    "taken for": re.compile(r"\btaken for (?!granted)"),
    "what becomes of": re.compile(r"\b(?:becomes?|became) of\b"),
    "one a line": re.compile(r"\bone an? (?:line|template|cell|run|row)\b"),
    "no sign of life": re.compile(r"\bsign of life\b"),
    "as no X does": re.compile(r"\b(?:as|which) no (?:\w+ ){1,4}(?:has|have|do|does)\b"),
    "are none of": re.compile(r"\b(?:is|are) none (?:of|that)\b"),
    "nobody can": re.compile(r"\b[Nn]obody\b"),
    "tell apart": re.compile(r"\b[Tt]ell(?:s|ing)? apart\b"),
    "for it": re.compile(r", for (?:it|they|he)\b"),
    "is bare": re.compile(r"\bthe window bare\b"),
    "give or take": re.compile(r"\bgive or take\b"),
    "not evidence": re.compile(r"\b(?:not|no) evidence\b"),
}


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module with their lines, without docstrings."""
    every = nodes(source)
    docs = {id(node.value) for node in every if isinstance(node, ast.Expr)}
    for node in every:
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


def test_documents_are_plain():
    documents = sorted(
        path for kind in ("*.md", "explorer/*.md", "trainer/*.md", "tests/*/*.md") for path in ROOT.glob(kind)
    )
    found_in = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in documents
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for name, pattern in BANNED.items()
        if pattern.search(text)
    ]
    assert found_in == []


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
        "This is no JPEG or PNG image.",
        "a link to x, which is no .txt",
        "The run waits and goes on by itself.",
        "Cosines of two runs are not on one scale.",
        "The runs answer in a process of their own.",
        "PCA, turned to face A",
        "each step is turned onto it",
        "rank of the caption, asked by the image",
        "the image of pair 2: the text asks",
        "What each run sees",
        "a red disc taken for a blue one",
        "Ask again what becomes of runs when closing",
        "Templates, one a line",
        "It has given no sign of life for 30 s.",
        "compressed, as no images do",
        "claims 3 rows, which no array of numbers has",
        "The settings are none of a model.",
        "Nobody can tell yet when it starts.",
        "how they can tell apart",
        "never predicted, for it learned no word",
        "opens the window bare",
        "read off the figures, give or take 2 %",
        "distances between clusters are not evidence",
    ],
)
def test_a_planted_text_is_found(text: str):
    assert found(f"def f():\n    return {text!r}\n")


@pytest.mark.parametrize("text", ["There is no run yet.", "It is no longer there.", "no one", "next to it"])
def test_good_texts_pass(text: str):
    assert not found(f"def f():\n    return {text!r}\n")


IDENTIFIERS = re.compile(r"sitting|asker|wish|speech|likeness|newcomer|roomy|courier|deaf|\btold\b", re.IGNORECASE)
"""Private words of earlier versions for session, client, request, text log, similarity, external image, or anything."""
FIRST_LINES = re.compile(
    r"\b(?:sittings?|asker|wish(?:es)?|beside|anew|stands? apart|sign of life|goes on|becomes of|"
    r"(?:is|are) told|tells (?:of|all|it|them)|lies in it|so many)\b"
)
"""What no first line of a docstring says."""
EARLIER = ("trainer/places/",)
"""It still calls a request to a trainer a wish."""


def identifiers(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines: classes, functions, parameters, variables and attributes."""
    for node in nodes(source):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr


def first_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line of each docstring."""
    for node in nodes(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text.splitlines()[0]


def wrong_words(source: str) -> list[tuple[int, str]]:
    """Return private words in names, and odd ones in the first lines of docstrings."""
    # Most files have none of them anywhere, and need not be parsed.
    names = identifiers(source) if IDENTIFIERS.search(source) else ()
    lines = first_lines(source) if FIRST_LINES.search(source) else ()
    found = [(line, name) for line, name in names if IDENTIFIERS.search(name)]
    return found + [(line, text) for line, text in lines if FIRST_LINES.search(text)]


@pytest.mark.parametrize("folder", ["explorer", "trainer"])
def test_names_and_first_lines_use_standard_terms(folder: str):
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(part in path.as_posix() for part in EARLIER)
        for line, words in wrong_words(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    [
        "sitting_at = 1",
        "class FakeAsker: ...",
        "def f(wishes): ...",
        "x.newcomers = 1",
        "told = f(x)",
        'def f():\n    """Return what is kept beside the images."""',
        '"""One that fails is told and left out."""',
    ],
)
def test_a_planted_word_is_found(source: str):
    assert wrong_words(source)


def test_standard_words_pass():
    assert not wrong_words('"""Return what is stored with the images."""\n\nsession_at = client.request(text_log)\n')
