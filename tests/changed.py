"""`pytest --changed`: the test files that a change can affect, nearest first, until a minute of processor time is full.

A file is affected if it imports, or names, a module that leads to a changed one by imports; how near it is, is the
number of imports between them. Commands, charts and views are loaded by name, so a test that uses one names it.
"""

import ast
import functools
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests import processor_time

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("explorer", "trainer")
BY_NAME: Final = {"trainer.__main__": ("trainer.cli", "trainer.charts"), "explorer.window": ("explorer.views",)}
"""Module -> packages whose modules it loads by the names that it is given."""
_DOTTED: Final = re.compile(r"\b(?:explorer|trainer|tests)(?:\.\w+)+")


@dataclass(frozen=True)
class Selection:
    """Test files to run, and how many others a change may affect.

    Attributes:
        files: Paths from the root of the repository, nearest first.
        left: Affected files beyond the time.
        changed: How many files have changed.
    """

    files: tuple[str, ...]
    left: int
    changed: int

    @property
    def sentence(self) -> str:
        """What is run, in words."""
        rest = f"; {self.left} more files may be affected: the plain suite runs them" if self.left else ""
        return f"{self.changed} changed files: {len(self.files)} files of tests{rest}"


def select(config: pytest.Config, since: str, seconds: float) -> Selection:
    """Return the test files that are affected by what changed after the commit `since`, within processor time."""
    changed = changed_files(since)
    distance = distances(changed)
    known = processor_time.seconds_by_file(config)
    cost = {file: known.get(file, processor_time.estimate(ROOT / file)) for file in distance}
    own = {f"test_{Path(file).stem}" for file in changed}
    ranked = sorted(distance, key=lambda file: (distance[file], Path(file).stem not in own, cost[file], file))
    files, used = [], 0.0
    for file in ranked:
        used += cost[file]
        if files and used > seconds:
            break
        files.append(file)
    return Selection(tuple(files), len(ranked) - len(files), len(changed))


def changed_files(since: str) -> list[str]:
    """Return files that differ from the last common commit with `since`, and new ones."""
    base = _git("merge-base", "HEAD", since)[0]
    return sorted({*_git("diff", "--name-only", base), *_git("ls-files", "--others", "--exclude-standard")})


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def distances(changed: Sequence[str]) -> dict[str, int]:
    """Return test file -> the number of imports to the nearest changed file, for those that lead to one."""
    near = _distances_of_modules([module_of(file) for file in changed if file.endswith(".py")])
    others = [Path(file).name for file in changed if not file.endswith(".py")]
    helpers = {module_of(file) for file in changed if file.startswith("tests/")}
    rooms = [str(Path(file).parent) for file in changed if Path(file).name == "conftest.py"]
    found = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        name, source = str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
        uses = modules_used(source, near)
        steps = [near[module] for module in uses if module in near]
        if name in changed or uses & helpers or any(other in source for other in others):
            steps.append(0)
        steps += [1 for room in rooms if name.startswith(room + "/")]
        if steps:
            found[name] = min(steps)
    return found


def module_of(file: str) -> str:
    """Return the dotted name of a Python file."""
    return ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")


def _distances_of_modules(changed: Iterable[str]) -> dict[str, int]:
    """Return module -> imports to the nearest changed module, over all that lead to one."""
    import grimp

    graph = grimp.build_graph(*PACKAGES, cache_dir=str(ROOT / ".import_linter_cache"))
    near = {module: 0 for module in changed if module in graph.modules}
    edge = list(near)
    while edge:
        importers = {one for module in edge for one in graph.find_modules_that_directly_import(module)}
        edge = [module for module in importers if module not in near]
        steps = max(near.values()) + 1
        near |= dict.fromkeys(edge, steps)
    return near


def modules_used(source: str, near: Mapping[str, int]) -> set[str]:
    """Return the modules that a test imports or names, and those that it loads by their names."""
    imports, words = _imports_and_texts(source)
    used = {*imports}
    for module, packages in BY_NAME.items():
        if module in used:
            used |= {f"{package}.{word}" for package in packages for word in words if f"{package}.{word}" in near}
    return used


@functools.cache
def _imports_and_texts(source: str) -> tuple[frozenset[str], frozenset[str]]:
    used, words = set(_DOTTED.findall(source)), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            used |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(node.value.replace("-", "_"))
    return frozenset(used), frozenset(words)
