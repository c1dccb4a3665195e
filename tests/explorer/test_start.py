"""The real program, started like a user starts it."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QDir, QObject, QRect

from explorer.state.settings import FILE
from explorer.widgets.layouts import FRAME
from explorer.window.single_instance import _socket_name, claim, listen_for_second_start, remove_stale_sockets
from explorer.window.window_state import SELECTION_KEY, first_geometry
from tests.nightly import few_plain

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("torch", "torchvision", "open_clip", "umap", "pynndescent", "scipy", "pandas"),
    *("pyqtgraph.parametertree", "pyqtgraph.multiprocess", "pyqtgraph.imageview"),
    "unittest.mock",
    "sqlalchemy.connectors.asyncio",
)
AFTER_PAINT = (
    *("numpy", "matplotlib", "sqlalchemy", "scipy", "numba", "pyqtgraph", "pyarrow", "jaxtyping", "tomllib"),
    *("trainer.store", "trainer.config.contents", "explorer.import_sheet.sheet", "explorer.widgets.help_panel"),
    *("explorer.window.settings_sheet", "explorer.window.shortcut_editor", "explorer.widgets.shortcut_sheet"),
)

PROGRAM = """
import builtins, json, sys
own_import = builtins.__import__
from explorer import __main__ as explorer_main
from explorer.event_loop.qt_import import import_qt
import_qt()
from PySide6.QtCore import QTimer
from explorer.widgets.state_area import Skeleton
from explorer.window import Window

seen = {}
begin = Window.begin

def first_paint(window):
    seen["at_paint"] = sorted(sys.modules)
    seen["skeletons"] = sum(one.isVisible() for one in window.pages.blank.findChildren(Skeleton))
    window.ready.connect(lambda: QTimer.singleShot(1500, window.close))
    begin(window)

Window.begin = first_paint
seen["status"] = explorer_main.main(sys.argv[1:])
seen["at_end"] = sorted(sys.modules)
seen["own_import"] = builtins.__import__ is own_import
print(json.dumps(seen))
"""

LOOKS_AT_THREADS = PROGRAM.replace(
    "seen = {}",
    """seen = {}
import threading
from explorer.window import view_builder
load = view_builder.load

def load_and_look(places):
    seen.setdefault("there", [name for name in ("PySide6.QtTest", "pyqtgraph") if name in sys.modules])
    seen["thread"] = threading.current_thread() is not threading.main_thread()
    return load(places)

view_builder.load = load_and_look
""",
)


def _start(*arguments: str, program: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program] if program else [sys.executable, "-m", "explorer"]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "CONTRASTIVE_EXPLORER_TRACE": "1"}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, env=environment)


KILLED = """
import os, sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from explorer.window.single_instance import listen_for_second_start
application = QCoreApplication([])
listen_for_second_start(Path(sys.argv[-1]), print, application)
os.kill(os.getpid(), 9)
"""


@dataclass(frozen=True)
class Start:
    """What the program saw, how it ended, its folder, and the sockets before and after it."""

    seen: dict
    ended: subprocess.CompletedProcess[str]
    folder: Path
    killed: subprocess.CompletedProcess[str]
    sockets: tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Kill a window, then start the program once with a new folder."""
    folder = tmp_path_factory.mktemp("start") / "new folder"
    folder.mkdir()
    # What was selected when it was closed is not what a first paint waits for.
    (folder / FILE).write_text(json.dumps({SELECTION_KEY: {"view": "similarity", "pairs": [3]}}))
    # The path of a socket may have a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="b") as short, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", short)
        killed = _start("--workspace", f"{short}/killed", program=KILLED)
        before = _sockets(Path(short))
        ended = _start("--workspace", str(folder), program=LOOKS_AT_THREADS)
        after = _sockets(Path(short))
    assert ended.returncode == 0, ended.stderr
    return Start(json.loads(ended.stdout.splitlines()[-1]), ended, folder, killed, (before, after))


def _sockets(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_socket())


@pytest.mark.slow
def test_the_window_paints_before_anything_heavy_is_loaded(start: Start) -> None:
    seen, ended, folder = start.seen, start.ended, start.folder
    print(ended.stderr)  # the milliseconds, shown with `pytest -rP`
    assert seen["status"] == 0
    assert seen["skeletons"] == 1, "no view is blank"
    assert not set(HEAVY + AFTER_PAINT) & set(seen["at_paint"])
    assert not set(HEAVY) & set(seen["at_end"])
    assert "cuda.bindings" not in seen["at_end"], "a crash of CUDA must not close the window"
    assert "sqlalchemy" in seen["at_end"], "the store was never opened, so this test proves nothing"
    assert "first paint after " in ended.stderr
    log = folder / "explorer.log"
    assert not log.exists() or " ERROR " not in log.read_text(), log.read_text()


@pytest.mark.slow
def test_the_types_of_qt_are_made_before_a_thread_imports_the_views(start: Start) -> None:
    assert start.seen["there"] == ["PySide6.QtTest"]
    assert start.seen["thread"]


@pytest.mark.slow
def test_imports_are_those_of_python_and_not_of_qt(start: Start) -> None:
    assert start.seen["own_import"], "PySide reads the source of every module that is imported"


def test_a_second_window_of_a_workspace_says_so_and_leaves(qtbot, tmp_path: Path) -> None:
    lock = claim(tmp_path)
    assert lock is not None
    ended = _start("--workspace", str(tmp_path))
    assert ended.returncode == 2
    assert "already open" in ended.stderr
    assert "--workspace" in ended.stderr
    lock.unlock()


def test_a_second_start_brings_the_first_window_forward(qtbot, tmp_path: Path) -> None:
    raised: list[bool] = []
    lock = claim(tmp_path)
    owner = QObject()
    listen_for_second_start(tmp_path, lambda _link: raised.append(True), owner)
    command = [sys.executable, "-m", "explorer", "--workspace", str(tmp_path)]
    second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    qtbot.waitUntil(lambda: bool(raised) and second.poll() is not None, timeout=30_000)
    assert second.returncode == 0
    assert "was brought to the front" in second.communicate()[1]
    assert lock is not None
    lock.unlock()


@pytest.mark.parametrize("odd", ["a link", "a link to nothing", "a folder", "a pipe", "words", "long"])
def test_what_no_window_made_at_the_place_of_the_lock_is_moved_aside(odd: str, tmp_path: Path) -> None:
    """Qt would take it for the lock of a window that does not respond, at every start."""
    path, other = tmp_path / "explorer.lock", tmp_path / "other"
    other.write_text("kept")
    if odd.startswith("a link"):
        path.symlink_to(other if odd == "a link" else tmp_path / "nowhere")
    elif odd == "a folder":
        path.mkdir()
    elif odd == "a pipe":
        os.mkfifo(path)
    else:
        path.write_text("no number" if odd == "words" else "1" * 30_000)
    lock = claim(tmp_path)
    assert lock is not None
    assert path.stat().st_mode & 0o777 == 0o600 or os.name == "nt"
    assert claim(tmp_path) is None, "a window's own lock stays"
    lock.unlock()
    assert other.read_text() == "kept"
    assert len(list(tmp_path.glob("explorer.lock-odd-*"))) == 1


@pytest.mark.slow
def test_the_lock_of_a_killed_window_is_taken_over(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from explorer.window.single_instance import claim;"
        "lock = claim(Path(sys.argv[1])); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=60)
    assert (tmp_path / "explorer.lock").exists()
    lock = claim(tmp_path)
    assert lock is not None
    lock.unlock()


INTERRUPTED = """
import os, signal, sys
from explorer import __main__ as explorer_main
from explorer.window import Window
name = sys.argv.pop(1)
act = getattr(Window, name)

def act_and_press(window, *arguments):
    act(window, *arguments)
    os.kill(os.getpid(), signal.SIGINT)

setattr(Window, name, act_and_press)
sys.exit(explorer_main.main(sys.argv[1:]))
"""


@pytest.mark.slow
@few_plain(1, "moment", ["show", "_begin_services"])
def test_ctrl_c_closes_the_window_at_any_moment_of_its_start(tmp_path: Path, moment: str) -> None:
    ended = _start(moment, "--workspace", str(tmp_path), program=INTERRUPTED)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="its pipes are no files")
def test_a_window_leaves_no_socket_and_takes_down_that_of_a_killed_one(start: Start) -> None:
    before, after = start.sockets
    assert start.killed.returncode == -signal.SIGKILL, start.killed.stderr
    assert len(before) == 1, "the window was killed before it removed its socket"
    assert after == []


@pytest.mark.skipif(os.name == "nt", reason="its pipes are no files")
def test_the_sockets_of_living_windows_stay_and_raise_no_window(qtbot, tmp_path: Path) -> None:
    raised: list[bool] = []
    owner = QObject()
    listen_for_second_start(tmp_path, lambda _link: raised.append(True), owner)
    folder = Path(QDir.tempPath())
    dead = folder / "contrastive-explorer-of-nobody"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(dead))
    remove_stale_sockets(folder)
    assert not dead.exists()
    assert _socket_name(tmp_path) in _sockets(folder)
    qtbot.wait(50)
    assert not raised


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_workspace_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    ended = _start("--workspace", str(tmp_path / "inside"))
    assert ended.returncode == 2
    assert "cannot be written" in ended.stderr


@pytest.mark.slow
def test_a_workspace_that_is_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    ended = _start("--workspace", str(file))
    assert ended.returncode == 2
    assert "cannot be written" in ended.stderr
    assert "--workspace" in ended.stderr


BARE = (
    PROGRAM.replace("window.close))", "finish))")
    .replace(
        "seen = {}",
        """seen = {}

def finish():
    from PySide6.QtWidgets import QLabel
    window = explorer_main_window[0]
    seen["banner"] = window.banner.message.text() + window.banner.next.text()
    seen["view"] = window.selection.view
    seen["warm"] = window.services.client.state("models")
    window.close()

explorer_main_window = []
""",
    )
    .replace("def first_paint(window):", "def first_paint(window):\n    explorer_main_window.append(window)")
)


def _bare(folder: Path, *arguments: str) -> dict:
    ended = _start("--workspace", str(folder), *arguments, program=BARE)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.slow
def test_safe_mode_uses_and_changes_nothing_that_was_remembered(tmp_path: Path) -> None:
    kept = json.dumps({"selection": {"view": "map"}, "window/theme": "dark"})
    (tmp_path / "explorer.json").write_text(kept)
    seen = _bare(tmp_path, "--safe")
    assert "safe mode" in seen["banner"]
    assert seen["view"] != "map"
    assert seen["warm"] == "cold"
    assert "numba" not in seen["at_end"]
    assert (tmp_path / "explorer.json").read_text() == kept


@pytest.mark.slow
@pytest.mark.nightly
def test_a_reset_starts_anew_and_keeps_a_copy(tmp_path: Path) -> None:
    kept = json.dumps({"selection": {"view": "map"}})
    (tmp_path / "explorer.json").write_text(kept)
    seen = _bare(tmp_path, "--reset")
    copies = list(tmp_path.glob("explorer-before-reset-*.json"))
    assert [copy.read_text() for copy in copies] == [kept]
    assert copies[0].name in seen["banner"]
    assert seen["view"] != "map"


@few_plain(
    1,
    ("environment", "reason"),
    [
        ({}, "There is no screen to open a window on: neither DISPLAY nor WAYLAND_DISPLAY is set."),
        ({"DISPLAY": ":98765"}, "Qt cannot open a window on DISPLAY=:98765 ("),
        ({"QT_QPA_PLATFORM": "nonsense"}, "Qt cannot open a window on this screen ("),
    ],
    ids=["no display", "a display that is not there", "no such plug-in"],
)
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a window needs no such variable")
def test_without_a_screen_the_program_ends_with_one_sentence(tmp_path: Path, environment, reason) -> None:
    plain = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    words = [sys.executable, "-m", "explorer", "--workspace", str(tmp_path)]
    ended = subprocess.run(words, env=plain | environment, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"explorer: {reason}")
    assert line.endswith("or work without a window: trainer --help lists the commands.")


@pytest.mark.parametrize("size", [(960, 600), (1280, 800), (1366, 728), (2560, 1440)])
def test_a_first_window_lies_on_the_screen_with_its_frame(size: tuple[int, int]) -> None:
    """At scale 1.5 a screen of 1440 x 900 has 960 x 600 pixels of Qt's."""
    room = QRect(70, 30, *size)
    first = first_geometry(room)
    assert room.contains(first.adjusted(0, 0, FRAME[0], FRAME[1]))
    assert first.width() == min(1280, size[0] - FRAME[0])
    assert FRAME[1] >= 40, "title bars have up to 40 pixels"
