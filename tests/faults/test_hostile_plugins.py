"""`--plugin FILE` beside what a stranger made: the source that a person named is run, and nothing else."""

import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.errors import UserError
from trainer.plugins import module_of
from trainer.store import Workspace
from trainer.untrusted.safe_subprocess import environment

pytestmark = [pytest.mark.real_process, pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(600)]

HARMLESS = """
def mean_length(image, text):
    return {}
METRICS, WHO = mean_length, "the source"
"""
RUNS = "from pathlib import Path\nPath({place!r}).write_text('it ran')\n"


def test_a_compiled_file_beside_the_source_is_not_run(tmp_path: Path, faults) -> None:
    """Python runs one that says that its source needs no look: who read the source would run something else."""
    source, other = tmp_path / "plug.py", tmp_path / "other.py"
    source.write_text(HARMLESS)
    other.write_text(HARMLESS.replace("the source", "the compiled file"))
    compiled = Path(importlib.util.cache_from_source(str(source)))
    compiled.parent.mkdir()
    py_compile.compile(str(other), str(compiled), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    before = compiled.read_bytes()
    assert module_of(source).WHO == "the source"
    assert compiled.read_bytes() == before
    faults.row("S2", "a compiled file beside the source of a plug-in", "the source is run", 1, 1)


@pytest.mark.timeout(20)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plug.py")
    with pytest.raises(OSError, match="pipe"):
        module_of(tmp_path / "plug.py")


def test_nothing_is_written_beside_a_plug_in(tmp_path: Path) -> None:
    (tmp_path / "plug.py").write_text(HARMLESS)
    module_of(tmp_path / "plug.py")
    assert [path.name for path in tmp_path.iterdir()] == ["plug.py"]


@pytest.mark.parametrize("name", ["plug.so", "plug.pyc", "plug.pyd", "plug", "plug.py.txt", "plug.PYC"])
def test_what_is_no_source_is_refused(name: str, tmp_path: Path, faults) -> None:
    (tmp_path / "plug.py").write_text(RUNS.format(place=str(tmp_path / "ran")))
    py_compile.compile(str(tmp_path / "plug.py"), str(tmp_path / name))
    with pytest.raises(UserError, match=r"does not end in \.py"):
        module_of(tmp_path / name)
    assert not (tmp_path / "ran").exists()
    faults.row("S2", "a plug-in that is no source (.so, .pyc)", "refused", 1, 1)


PLACES = ("plug.py", "plugins/plug.py", "runs/0001-one/plug.py", "conftest.py", "sitecustomize.py", "chart.py")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Return the copy of a workspace that is full of plug-ins, with a run that names one."""
    original = Workspace(tmp_path / "original")
    original.runs.create(config.Run(name="one"), status="stopped")
    original.close()
    for place in PLACES:
        file = original.folder / place
        file.parent.mkdir(exist_ok=True)
        file.write_text(RUNS.format(place=str(tmp_path / "ran")) + HARMLESS)
    shutil.copytree(original.folder, tmp_path / "copy")
    folder = tmp_path / "copy"
    names = f'[objective]\nkind = "plug"\nplugin = "{folder}/plug.py"\n'
    for file in (folder / "runs" / "0001-one" / "config.toml", folder / "plugins.toml", folder / "trainer.toml"):
        file.write_text(f'name = "one"\n{names}')
    return folder


COMMANDS = [("runs",), ("runs", "show", "1"), ("doctor",), ("fit", "1"), ("export", "curves", "--runs", "1")]


@few_plain(
    1,
    "words",
    nightly_except(COMMANDS, *[words for words in COMMANDS if words[0] not in ("doctor", "fit")]),
    ids=" ".join,
)
def test_a_plug_in_beside_a_workspace_of_others_is_the_only_one(words, foreign: Path, tmp_path: Path, faults) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(HARMLESS + RUNS.format(place=str(tmp_path / "mine-ran")))
    command = [sys.executable, "-m", "trainer", *words, "--plugin", str(mine), "--workspace", str(foreign)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=foreign, env=environment())
    assert "Traceback" not in done.stderr
    assert (tmp_path / "mine-ran").exists()
    assert not (tmp_path / "ran").exists()
    count = len(PLACES)
    faults.row("S2", "plug-ins in a stranger's workspace, beside one that was named", "none is run", count, count)
