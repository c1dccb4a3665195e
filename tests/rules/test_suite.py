"""The tests test the program, not the machine."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import compiled_once
from tests.lazily import lazily
from tests.rules.sources import nodes

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CLOCKS = ("monotonic", "perf_counter", "time", "process_time", "thread_time")


def asserted_times(source: str) -> Iterator[int]:
    """Yield lines that assert an upper limit on a duration, outside tests marked `timed` and complete faults."""
    if not re.search(rf"\.(?:{'|'.join(CLOCKS)})\(", source):
        return  # most files: parsing all takes seconds
    for function in (node for node in nodes(source) if isinstance(node, ast.FunctionDef)):
        if any(ast.unparse(mark).startswith("pytest.mark.timed") for mark in function.decorator_list):
            continue
        inner = list(ast.walk(function))
        spans = {
            target.id
            for node in inner
            if isinstance(node, ast.Assign) and _is_span(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in inner:
            if isinstance(node, ast.Assert) and "faults.whole" not in ast.unparse(node.test):
                compared = (part for part in ast.walk(node.test) if isinstance(part, ast.Compare))
                if any(_is_bounded(one, spans) for one in compared):
                    yield node.lineno


def _is_span(node: ast.AST) -> bool:
    """Return whether it is a duration: the difference of two clock readings."""
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and _reads(part) for part in ast.walk(node))


def _reads(node: ast.AST) -> bool:
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr in CLOCKS for call in calls)


def _is_bounded(compared: ast.Compare, spans: set[str]) -> bool:
    """Return whether it asserts that a duration is less than a number."""
    terms = (compared.left, *compared.comparators)
    return any(
        isinstance(way, (ast.Lt, ast.LtE)) and _is_number(more) and (_is_span(less) or _names(less) & spans)
        for way, less, more in zip(compared.ops, terms, terms[1:])
    )


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_no_plain_test_asserts_how_long_something_takes():
    found = {f"{file.relative_to(ROOT)}:{line}" for file in TESTS for line in asserted_times(file.read_text("utf-8"))}
    assert found == set()


@pytest.mark.parametrize(
    "planted",
    [
        "def test_it():\n    began = time.monotonic()\n    act()\n    assert time.monotonic() - began < 5",
        "def test_it():\n    began = time.time()\n    took = time.time() - began\n    assert good and took <= 0.5",
        "def test_it():\n    took = 1000 * (perf() - time.perf_counter())\n    assert took < 3",
    ],
)
def test_an_asserted_time_is_found(planted: str):
    assert len(list(asserted_times(planted))) == 1
    marked = f"@pytest.mark.timed\n{planted}"
    assert not list(asserted_times(marked))
    assert not list(asserted_times(planted.replace("<=", ">=").replace("<", ">")))


def test_the_plain_suite_leaves_out_what_only_a_quiet_machine_can_tell():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    assert "-m 'not nightly and not timed'" in settings["addopts"]


def test_what_is_imported_lazily_is_not_imported_by_what_pytest_asks_of_every_name_in_a_file():
    library = lazily("this")
    assert not any(hasattr(library, attribute) for attribute in ("__test__", "__wrapped__", "_mock_name"))
    assert "this" not in sys.modules


def test_machine_code_is_shared_by_sources_of_one_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from numba.core.caching import _CacheLocator

    monkeypatch.setattr(compiled_once, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(compiled_once, "cache_folder", lambda: tmp_path / "numba")
    seen = []
    for checkout, text in (("a", "x = 1"), ("b", "x = 1"), ("changed", "x = 2")):
        source = tmp_path / checkout / "kernels.py"
        source.parent.mkdir()
        source.write_text(text)
        compiled_once.link([source])
        link = tmp_path / "numba" / _CacheLocator.get_suitable_cache_subpath(str(source))
        seen.append((link.readlink(), source.stat().st_mtime))
    assert len({*seen[:2]}) == 1
    assert not {*seen[1]} & {*seen[2]}
