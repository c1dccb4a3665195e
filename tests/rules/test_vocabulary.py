"""Names are standard terms, and docstrings name what exists."""

import ast
import builtins
import subprocess
from pathlib import Path

import pytest

from tests.rules import sources, vocabulary

pytestmark = pytest.mark.slow

MOST_PRIVATE = 0.2
"""Percent of functions with a private word; it can only fall."""
MOST_MISNAMED = 0.4
"""Percent of files of one class (or two) with classes named unlike them; it can only fall."""


def test_ever_fewer_functions_use_a_private_vocabulary() -> None:
    assert vocabulary.share_of_private_vocabulary() <= MOST_PRIVATE, "say what the value is: index, path, label"


def test_variables_of_every_kind_are_seen() -> None:
    source = """
def f(a, *b, c=1, **d):
    for e in [g for g in a]:
        with a as h, (k := c):
            pass
    try:
        m, (n, *o) = b
    except ValueError as p:
        x = lambda q: q
    match a:
        case [r, *s]:
            pass
    def t(u):
        v = 1
"""
    function = next(vocabulary.functions(ast.parse(source)))
    assert vocabulary.names_bound_in(function) == set("abcdeghkmnopxqrs")


def test_classes_carry_the_name_of_their_file() -> None:
    misnamed, total = vocabulary.misnamed_files()
    assert 100.0 * len(misnamed) / total <= MOST_MISNAMED, "\n".join(misnamed)


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("window/stall_detector.py", "StallDetector", True),
        ("window/stall_detector.py", "Watchdog", False),
        ("views/map/view.py", "MapView", True),
        ("views/map/view.py", "Canvas", False),
        ("theme/lazy_style_sheet.py", "LazyStyleSheet", True),
        ("widgets/combo_boxes.py", "ComboBox", True),
        ("widgets/combo_boxes.py", "Picker", False),
        ("store/__init__.py", "Store", True),
    ],
)
def test_a_class_is_compared_with_its_file(path: str, name: str, expected: bool) -> None:
    assert vocabulary.is_named_after_its_file([name], Path(path)) is expected


def test_what_a_docstring_raises_is_a_class() -> None:
    every = (node for tree in vocabulary.trees().values() for node in sources.walked(tree))
    defined = {node.name for node in every if isinstance(node, ast.ClassDef)}
    imported = {"CalledProcessError", "TimeoutExpired"}
    gone = [pair for pair in vocabulary.exceptions_named() if pair[1] not in defined | {*dir(builtins)} | imported]
    assert gone == []


def test_documents_that_code_names_are_in_the_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=vocabulary.ROOT, capture_output=True, text=True, check=True
    )
    documents = {Path(line).name for line in listed.stdout.splitlines()}
    assert [pair for pair in vocabulary.documents_named() if pair[1] not in documents] == []
