"""Processes are started by trainer/untrusted/safe_subprocess.py: a safe path, and a trusted working folder."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import nodes

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
DOOR = "trainer/untrusted/safe_subprocess.py"
SOURCES = sorted(path for room in ("trainer", "explorer") for path in (ROOT / room).rglob("*.py"))

OF = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"spawn", "fork"},
    "QProcess": {"startDetached", "execute"},
}
OF_OS = ("system", "popen", "spawn", "exec", "posix_spawn", "fork", "startfile")
"""What the names of functions of `os` begin with that start a program."""


def starts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that starts a process without `trainer.untrusted.safe_subprocess`."""
    if not re.search(rf"\b(?:{'|'.join((*OF, 'os'))})\b", source):
        return  # most files: parsing all takes seconds
    every = nodes(source)
    # `subprocess.Popen[bytes]` is a type.
    types = {id(node.value) for node in every if isinstance(node, ast.Subscript)}
    for node in every:
        if isinstance(node, ast.ImportFrom) and node.module in (*OF, "os"):
            yield from ((node.lineno, alias.name) for alias in node.names if _starts(node.module, alias.name))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if id(node) not in types and _starts(node.value.id, node.attr):
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif _makes_qprocess(node) and "keep_safe(" not in source:
            yield node.lineno, "QProcess without keep_safe"


def _starts(module: str, name: str) -> bool:
    return name in OF.get(module, ()) or (module == "os" and name.startswith(OF_OS))


def _makes_qprocess(node: ast.AST) -> bool:
    made = node.bases if isinstance(node, ast.ClassDef) else [node.func] if isinstance(node, ast.Call) else []
    return any(isinstance(one, ast.Name) and one.id == "QProcess" for one in made)


def test_processes_are_started_at_one_place() -> None:
    assert list(starts((ROOT / DOOR).read_text(encoding="utf-8"))), "the door itself starts none any more"
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line} {name}"
        for path in SOURCES
        if path != ROOT / DOOR
        for line, name in starts(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"start them by {DOOR}: {found}"


@pytest.mark.parametrize(
    "planted",
    [
        "import subprocess\nsubprocess.run(['git'])",
        "import subprocess\nsubprocess.Popen(['git'])",
        "import subprocess\nsubprocess.check_output(['git'])",
        "import subprocess\nstart = subprocess.Popen\nstart(['git'])",
        "from subprocess import Popen",
        "from subprocess import run as start",
        "import os\nos.system('git')",
        "from os import popen",
        "import os\nos.execvp('git', ['git'])",
        "import os\nos.spawnlp(os.P_WAIT, 'git', 'git')",
        "import os\nos.posix_spawn('git', [], {})",
        "import os\nos.startfile('a.html')",
        "import asyncio\nasyncio.create_subprocess_exec('git')",
        "import pty\npty.spawn('sh')",
        "process = QProcess(self)",
        "class Child(QProcess):\n    pass",
        "QProcess.startDetached('git')",
    ],
)
def test_a_planted_start_is_found(planted: str) -> None:
    assert list(starts(planted))


@pytest.mark.parametrize(
    "harmless",
    [
        "import subprocess\nexcept_ = subprocess.TimeoutExpired",
        "process: subprocess.Popen[bytes]",
        "safe_subprocess.run(['git'], check=True)",
        "safe_subprocess.start(['git'], stdin=subprocess.PIPE)",
        "child = QProcess(self)\nkeep_safe(child)",
        "import os\nos.register_at_fork(after_in_child=forget)",
    ],
)
def test_what_starts_nothing_is_none(harmless: str) -> None:
    assert not list(starts(harmless))
