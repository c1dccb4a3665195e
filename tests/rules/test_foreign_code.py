"""No opened file runs code: risky calls are banned outside of one module; no library has a known hole."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import called, nodes

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
DOOR = "trainer/checkpoints/tensor_file.py"
"""The one module that opens files of torch."""
SOURCES = sorted(path for room in ("trainer", "explorer", "packaging") for path in (ROOT / room).rglob("*.py"))

FLOORS = {
    "torch": ("2.10", "CVE-2025-32434, CVE-2026-24747"),
    "pillow": ("12.1.1", "CVE-2026-25990, CVE-2025-48379, CVE-2023-4863"),
    "pyarrow": ("14.0.1", "CVE-2023-47248"),
    "pyside6-essentials": ("6.11.3", "CVE-2026-105923, CVE-2025-5683, CVE-2025-5992, CVE-2025-14576, CVE-2024-25580"),
    "transformers": ("5.0", "CVE-2026-1839"),
    "pillow-heif": ("1.3.0", "CVE-2026-28231"),
}
"""The oldest version of each library that reads untrusted input, and why."""

IMPORTS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml", "jsonpickle"}
CALLS = {
    "eval": "runs a text",
    "exec": "runs a text",
    "__import__": "imports by a text",
    "os.system": "runs a text",
    "os.popen": "runs a text",
    "torch.load": f"is for {DOOR}",
    "torch.jit.load": "opens a program",
    "torch.hub.load": "runs what it downloads",
    "pd.read_pickle": "opens a pickle",
    "shutil.unpack_archive": "unpacks",
}
METHODS = {"extractall": "unpacks", "load_state_dict_from_url": "opens a download", "read_pickle": "opens a pickle"}
MUST_BE = {"allow_pickle": False, "weights_only": True, "shell": False, "trust_remote_code": False}
"""Keyword -> the only value it may have, written out."""
PICTURES = "trainer/images/decoding.py"
"""The one decoder of foreign pictures."""


def violations(source: str, name: str) -> Iterator[str]:
    """Yield calls that could run code in a file, or decode an untrusted image without the decoder's limits."""
    for node in nodes(source):
        where = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (f"{where} imports {a.name}" for a in node.names if a.name.partition(".")[0] in IMPORTS)
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in IMPORTS:
                yield f"{where} imports {node.module}"
            if node.module == "torch" and "load" in {alias.name for alias in node.names} and name != DOOR:
                yield f"{where} imports torch.load"
        elif isinstance(node, ast.Call):
            function = called(node)
            if function in CALLS and not (function == "torch.load" and name == DOOR):
                yield f"{where} {function} {CALLS[function]}"
            if function.rpartition(".")[2] in METHODS:
                yield f"{where} {function} {METHODS[function.rpartition('.')[2]]}"
            if function in ("Image.open", "PIL.Image.open") and name != PICTURES and not _of_memory(node):
                yield f"{where} {function} is for {PICTURES}"
            if function == "torch.load" and "weights_only" not in {word.arg for word in node.keywords}:
                yield f"{where} torch.load without weights_only"
            for word in node.keywords:
                if word.arg in MUST_BE and ast.unparse(word.value) != str(MUST_BE[word.arg]):
                    yield f"{where} {function}({word.arg}={ast.unparse(word.value)})"


def _of_memory(node: ast.Call) -> bool:
    """Return whether it opens what this program has just packed itself."""
    return bool(node.args) and ast.unparse(node.args[0]).startswith(("stream", "buffer", "io.BytesIO"))


@pytest.mark.slow
def test_nothing_in_the_program_could_run_a_file() -> None:
    found = [
        one
        for path in SOURCES
        for one in violations(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]
    assert len(SOURCES) > 300
    assert found == []


PLANTED = (
    "import pickle",
    "from pickle import loads",
    "import joblib as j",
    "import yaml",
    "import torch\ntorch.load(f, weights_only=True)",
    "from torch import load",
    "torch.jit.load(f)",
    "np.load(f, allow_pickle=True)",
    "np.load(f, allow_pickle=flag)",
    "eval(words)",
    "exec(words)",
    "os.system(words)",
    "subprocess.run(words, shell=True)",
    "archive.extractall(folder)",
    "shutil.unpack_archive(f)",
    "AutoModel.from_pretrained(n, trust_remote_code=True)",
    "Image.open(path)",
)


def test_every_planted_violation_is_found(faults) -> None:
    found = sum(bool(list(violations(source, "trainer/planted.py"))) for source in PLANTED)
    found += bool(list(violations("torch.load(f, weights_only=False)", DOOR)))
    found += bool(list(violations("torch.load(f)", DOOR)))
    faults.row(24, "code that opens pickles is written", "found by the rule", len(PLANTED) + 2, found)
    assert found == len(PLANTED) + 2
    assert not list(violations("torch.load(f, weights_only=True)", DOOR))
    assert not list(violations("np.load(f, allow_pickle=False)\nnp.load(f)", "trainer/planted.py"))


@pytest.mark.slow
@pytest.mark.parametrize("line", ["import pickle", "import torch\n\ntorch.load('x', weights_only=True)", "import yaml"])
def test_ruff_finds_it_too(line: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--stdin-filename"]
    for name, code in (("trainer/store/planted.py", 1), (DOOR, 0)):
        answer = subprocess.run(
            [*command, name, "-"], input=f"{line}\n", capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert answer.returncode == code, answer.stdout + answer.stderr


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:3])


def test_what_is_installed_has_no_known_hole(faults) -> None:
    installed = {name: _installed(name) for name in FLOORS}
    there = {name: found for name, found in installed.items() if found}
    good = [name for name, found in there.items() if version(found) >= version(FLOORS[name][0])]
    faults.row(24, "a library with a known hole is installed", "none is", len(there), len(good))
    assert len(there) >= 4
    assert sorted(good) == sorted(there), {name: (found, FLOORS[name]) for name, found in there.items()}
    if sys.version_info < (3, 12):
        assert version(there["pyside6-essentials"]) < (6, 12)  # aborts after 5,000 calls


def test_what_is_asked_for_is_no_older() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    floors = [found.groups() for line in asked if (found := re.match(r"([A-Za-z0-9-]+)(?:\[.*?\])?>=([0-9.]+)", line))]
    for name, floor in floors:
        if name.lower() in FLOORS:
            assert version(floor) >= version(FLOORS[name.lower()][0]), name
    assert {"torch", "pillow", "pyarrow", "pyside6-essentials"} <= {name.lower() for name, _ in floors}


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
