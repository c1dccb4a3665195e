"""Code in the current folder is run neither by a command nor by a process it starts."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.nightly import few_plain
from trainer import config
from trainer.store import Workspace
from trainer.untrusted import safe_subprocess

pytestmark = [pytest.mark.real_process, pytest.mark.faults, pytest.mark.timeout(1_800)]

ROOT = Path(__file__).parents[2]
HOSTILE = (
    *(
        "json",
        "random",
        "torch",
        "numpy",
        "sitecustomize",
        "usercustomize",
        "argparse",
        "pkgutil",
        "signal",
        "dataclasses",
    ),
    *("logging", "PySide6", "PIL", "sqlalchemy", "pyarrow", "matplotlib", "psutil", "platformdirs", "shlex"),
)
"""Names of modules that Python, the application or its libraries import after Python itself has started."""

TINY = tuple(
    word
    for change in (
        "device=cpu",
        "optimizer.epochs=1",
        "optimizer.batch_size=4",
        "model.image_size=32",
        "model.image_width=8",
    )
    for word in ("--set", change)
)

WINDOW = """
import sys, time
import explorer.__main__ as program
from PySide6.QtCore import QTimer
from explorer.window import Window

begin = Window.begin

def begun(window):
    def watch():
        window.services.client.warm_up(projections=True)  # no torch: the quicker of the two
        state = window.services.client.state("projections")
        if state in ("warm", "gone") or time.monotonic() > end:
            print("state", state)
            window.close()
    end = time.monotonic() + 240
    timer = QTimer(window, interval=100, timeout=watch)
    window.ready.connect(timer.start)
    begin(window)

Window.begin = begun
sys.exit(program.main(sys.argv[1:]))
"""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """Return a folder of images with Python files that record in `ran` that they were run."""
    from PIL import Image

    folder = tmp_path / "from a stranger"
    folder.mkdir()
    for name in HOSTILE:
        words = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + chr(10))\nraise SystemExit('planted')\n"
        (folder / f"{name}.py").write_text(words)
    found = folder / "planted_chart-1.0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: planted-chart\nVersion: 1.0\n")
    (found / "entry_points.txt").write_text("[contrastive_explorer.charts]\nstranger = json\n")
    for number in range(12):
        Image.new("RGB", (32, 32), (20 * number, 10, 200)).save(folder / f"{number}.png")
        (folder / f"{number}.txt").write_text(f"picture {number}\n")
    return folder


def _run(trap: Path, *words: str, ok: bool = True, module: str = "trainer", **more: str) -> str:
    """Return a command's output, started in the trap like `python -m`: with the current folder first on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment |= {"PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1", **more}
    start = [sys.executable, "-m", module] if module else [sys.executable, "-P"]
    ended = subprocess.run(
        [*start, *words], cwd=trap, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert not (trap.parent / "ran").exists(), (words, (trap.parent / "ran").read_text())
    assert "planted" not in ended.stdout + ended.stderr
    assert not ok or ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_trap_works(trap: Path):
    """Otherwise every test here would pass whatever the application does."""
    # A command that another test ran in this process has asked for the safe path.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ended = subprocess.run(
        [sys.executable, "-c", "import json"], cwd=trap, env=environment, capture_output=True, text=True, check=False
    )
    assert "planted" in ended.stderr
    assert "json" in (trap.parent / "ran").read_text()


def test_commands_run_no_code_of_the_current_folder(trap: Path, faults):
    space = ("--workspace", str(trap.parent / "workspace"))
    assert "12 pairs" in _run(trap, "data", "show", "--data", ".", *space)  # a helper decodes
    words = ("fit", "--preset", "clip-scenes", "--data", ".", "--name", "in a trap", "--detach", "--json")
    number = json.loads(_run(trap, *words, *TINY, *space).splitlines()[-1])["id"]
    deadline, workspace = time.monotonic() + 300, Workspace(trap.parent / "workspace")
    while workspace.runs.get(number).active:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    workspace.close()
    (row,) = json.loads(_run(trap, "runs", "--json", *space))
    assert (row["id"], row["status"]) == (number, "finished")
    _run(trap, "doctor", *space, ok=False)
    if faults.part <= 10:
        _run(
            trap,
            "export",
            "stranger",
            "--runs",
            str(number),
            "--out",
            str(trap.parent / "stranger.csv"),
            *space,
            ok=False,
        )
        _run(trap, "evaluate", "--help")
        _run(
            trap, "export", "curves", "--runs", str(number), "--out", str(trap.parent / "curves.csv"), *space, ok=False
        )
    words = "modules in the current folder called as those of Python, torch and numpy"
    faults.row("S2", words, "none is run by the commands", len(HOSTILE), len(HOSTILE))


SHOWN = """
import sys
import trainer.__main__ as program
program.main(["runs", "--workspace", sys.argv[1]])
import matplotlib, numba
from numba.core import config
config.reload_config()  # as every compilation does
print(matplotlib.rcParams["text.usetex"], config.CACHE_DIR == "stolen", config.DISABLE_JIT)
"""


@few_plain(1, "endless", [False, True])
def test_settings_of_libraries_in_the_current_folder_are_not_read(tmp_path: Path, endless: bool):
    if endless:
        (tmp_path / "matplotlibrc").symlink_to("/dev/zero")
    else:
        (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: stolen\ndisable_jit: 1\n")
    said = _run(tmp_path, "-c", SHOWN, str(tmp_path / "space"), module="")
    assert said.splitlines()[-1] == "False False 0"


@few_plain(1, "module", ["explorer", "trainer"])
def test_a_folder_that_is_gone_is_no_reason_to_fail(tmp_path: Path, module: str):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, subprocess, sys; os.rmdir('.') if os.name == 'nt' else os.rmdir(os.getcwd());"
    code += f"sys.exit(subprocess.run([sys.executable, '-P', '-m', '{module}', '--help']).returncode)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", code], cwd=gone, env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.nightly
def test_the_window_and_its_processes_run_no_code_of_the_current_folder(trap: Path, tmp_path: Path):
    space = tmp_path / "workspace"
    Workspace(space).runs.create(config.Run(name="one"), status="stopped")
    script = tmp_path / "window.py"
    script.write_text(WINDOW)
    said = _run(trap, str(script), "--workspace", str(space), module="")
    assert "state warm" in said, said
    _run(trap, "--help", module="explorer")


def test_a_child_has_absolute_folders_on_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "beside", str(ROOT), "")))
    made = safe_subprocess.environment({"MORE": "1"})
    assert made["PYTHONPATH"].split(os.pathsep) == [str(tmp_path / "beside"), str(ROOT)]
    assert (made["PYTHONSAFEPATH"], made["MORE"]) == ("1", "1")


def test_a_path_that_names_the_current_folder_runs_its_code_once_at_most(trap: Path, tmp_path: Path):
    """Python runs the first process's `sitecustomize.py` before our code; later processes must not."""
    for name in HOSTILE:
        if name != "sitecustomize":
            (trap / f"{name}.py").unlink()
    (trap / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), ".", "")), "OMP_NUM_THREADS": "1"}
    words = ["-m", "trainer", "data", "show", "--data", ".", "--workspace", str(tmp_path / "workspace")]
    ended = subprocess.run(
        [sys.executable, *words], cwd=trap, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert ended.returncode == 0, ended.stderr
    assert "12 pairs" in ended.stdout, "helpers decoded them"
    assert (tmp_path / "ran").read_text() == "x"


def test_programs_are_found_by_absolute_folders_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "git").write_text("#!/bin/sh\n")
        (tmp_path / folder / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    for path, found in ((".", None), ("", None), (f".:{tmp_path / 'there'}", str(tmp_path / "there" / "git"))):
        monkeypatch.setenv("PATH", path)
        assert safe_subprocess.find("git") == found
