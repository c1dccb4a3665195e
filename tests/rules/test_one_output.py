"""What commands print goes through one door, which spells what a terminal would act on."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import nodes

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
WITHOUT = {"trainer/untrusted/terminal.py": "is the door"}
"""Module -> why it may print without the door."""
STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


def prints(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that writes to standard output or standard error."""
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in ("print", "pprint"):
            yield node.lineno, called.id
        if not isinstance(called, ast.Attribute):
            continue
        if called.attr in ("print_help", "print_usage", "pprint"):
            yield node.lineno, called.attr
        if called.attr in ("write", "writelines") and _is_stream(called.value):
            yield node.lineno, called.attr


def _is_stream(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        if node.attr in STREAMS:
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id in STREAMS


@pytest.mark.slow
def test_commands_print_through_the_door() -> None:
    found = {
        f"{name}:{line} {call}"
        for path in sorted((ROOT / "trainer").rglob("*.py"))
        if (name := path.relative_to(ROOT).as_posix()) not in WITHOUT
        for line, call in prints(path.read_text(encoding="utf-8"))
    }
    assert not found, f"print by trainer/untrusted/terminal.py: {sorted(found)}"


def test_every_exception_is_needed() -> None:
    for name, why in WITHOUT.items():
        assert why
        assert list(prints((ROOT / name).read_text(encoding="utf-8"))), f"{name} needs no exception any more"


@pytest.mark.parametrize(
    "planted",
    [
        "print(row.name)",
        "print(row.name, file=sys.stderr)",
        "sys.stdout.write(row.name)",
        "sys.stderr.write(row.name)",
        "sys.stdout.buffer.write(content)",
        "sys.__stdout__.writelines(rows)",
        "from sys import stdout\nstdout.write(x)",
        "pprint.pprint(row)",
        "parser.print_help()",
    ],
)
def test_a_planted_print_is_found(planted: str) -> None:
    assert list(prints(planted))


@pytest.mark.parametrize("harmless", ["say(row.name)", "file.write(b'')", "self.print_one(x)", "stream.write(x)"])
def test_what_prints_nothing_is_left_alone(harmless: str) -> None:
    assert not list(prints(harmless))
