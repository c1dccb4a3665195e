"""Files are written, moved and removed through one module; exceptions state why."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.sources import nodes

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for room in ("trainer", "explorer") for path in (ROOT / room).rglob("*.py"))

WITHOUT = {
    "trainer/untrusted/confined.py": "is the door",
}
"""Module -> why it may write, move or remove without the door."""

METHODS = {"rmtree", "unlink", "write_text", "write_bytes", "truncate", "ftruncate"}
"""Names that only files and folders have."""
OF_OS = {"remove", "replace", "rename", "renames", "unlink", "truncate", "ftruncate"}
OF_SHUTIL = {"rmtree", "move", "copy", "copy2", "copyfile", "copytree"}


def writes(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call that writes, truncates, moves or removes a file."""
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil"):
            names = OF_OS if node.module == "os" else OF_SHUTIL
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in names)
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        of = called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""
        if of == "confined" or _is_of_a_draft(node) or (isinstance(called, ast.Name) and called.id == "write_text"):
            continue  # `write_text` alone is that of trainer/store/files.py
        if (
            name in METHODS
            or (of == "os" and name in OF_OS)
            or (of == "shutil" and name in OF_SHUTIL)
            # `str.replace` takes two words, `Path.replace` one; a table of runs has a `rename` of its own, of two.
            or (of == "np" and name in ("save", "savez", "savez_compressed") and not _is_for_a_stream(node))
            or (name in ("replace", "rename") and isinstance(called, ast.Attribute) and _moves(node, of))
            or (name == "open" and _is_for_writing(node, of))
        ):
            yield node.lineno, name


def _is_for_a_stream(call: ast.Call) -> bool:
    """Return whether it writes to memory, or to a file opened by that module; numpy itself would follow a link."""
    target = call.args[0] if call.args else None
    return (isinstance(target, ast.Name) and target.id in ("stream", "content", "buffer")) or _is_within_a_draft(target)


def _is_within_a_draft(target: ast.expr | None) -> bool:
    while isinstance(target, ast.BinOp):
        target = target.left
    return isinstance(target, ast.Name) and target.id == "draft"


def _is_of_a_draft(call: ast.Call) -> bool:
    """Return whether it writes a `draft` that trainer/store/files.py created and moves to its place."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call
    while isinstance(owner, ast.BinOp):
        owner = owner.left
    return isinstance(owner, ast.Name) and owner.id == "draft" and call.func.attr not in ("unlink", "replace", "rename")


def _moves(call: ast.Call, of: str) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    is_model = isinstance(owner, ast.Attribute) and owner.attr == "_model"
    return of not in ("config", "dataclasses") and not is_model and len(call.args) == 1 and not call.keywords


def _is_for_writing(call: ast.Call, of: str) -> bool:
    if of == "tarfile" and any(k.arg == "fileobj" for k in call.keywords):
        return False  # into a file that that module has opened
    if of in ("tarfile", "zipfile", "Image"):
        return any(_is_mode(value) for value in (*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")))
    if of == "os" and isinstance(call.func, ast.Attribute) and call.func.attr == "open":
        return any(
            isinstance(n, ast.Attribute) and n.attr in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC")
            for n in ast.walk(call)
        ) and "devnull" not in ast.dump(call.args[0])
    return any(_is_mode(value) for value in (*call.args[:2], *(k.value for k in call.keywords if k.arg == "mode")))


def _is_mode(node: ast.expr) -> bool:
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return bool(text) and set(text) <= set("rwxabt+:gz") and bool(set(text) & set("wax+")) and len(text) <= 5


@pytest.mark.slow
def test_files_are_written_moved_and_removed_through_the_door() -> None:
    found = {
        f"{name}:{line} {call}"
        for path in SOURCES
        if (name := path.relative_to(ROOT).as_posix()) not in WITHOUT
        for line, call in writes(path.read_text(encoding="utf-8"))
    }
    assert not found, f"go through trainer/untrusted/confined.py, or trainer/store/files.py: {sorted(found)}"


def test_every_exception_is_needed() -> None:
    for name, why in WITHOUT.items():
        assert why
        assert list(writes((ROOT / name).read_text(encoding="utf-8"))), f"{name} needs no exception any more"


@pytest.mark.parametrize(
    "planted",
    [
        "import shutil\nshutil.rmtree(row.folder)",
        "from shutil import rmtree\nrmtree(row.folder, ignore_errors=True)",
        "(folder / 'a').unlink(missing_ok=True)",
        "import os\nos.remove(name)",
        "import os\nos.replace(a, b)",
        "from os import replace",
        "path.rename(other)",
        "path.replace(other)",
        "os.truncate(path, 0)",
        "with path.open('r+b') as file:\n    file.truncate()",
        "open(path, 'w')",
        "open(path, mode='a', encoding='utf-8')",
        "Path(name).open('wb')",
        "path.open('x')",
        "io.open(path, 'r+')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "path.write_text('x')",
        "(folder / 'x').write_bytes(b'')",
        "shutil.copyfile(a, b)",
        "shutil.move(a, b)",
        "tarfile.open(path, 'w')",
        "tarfile.open(path, mode='w')",
        "draft.unlink()",
        "np.save(path, vectors)",
        "np.savez_compressed(folder / 'a.npz', a=a)",
    ],
)
def test_a_planted_write_is_found(planted: str) -> None:
    assert list(writes(planted))


@pytest.mark.parametrize(
    "harmless",
    [
        "path.open('rb')",
        "open(path)",
        "open(path, 'r', encoding='utf-8')",
        "text.replace('a', 'b')",
        "workspace.rename(1, 'w')",
        "dataclasses.replace(run, name='w')",
        "os.open(path, os.O_RDONLY)",
        "Image.open(file)",
        "confined.replace(root, a, b)",
        "tarfile.open(fileobj=file, mode='w')",
        "rows.remove(1)",
        "np.save(stream, vectors)",
        "np.save(draft / 'a.npy', vectors)",
        "(draft / 'a').write_text('x')",
    ],
)
def test_reading_is_no_write(harmless: str) -> None:
    assert not list(writes(harmless))
