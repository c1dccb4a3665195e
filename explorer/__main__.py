"""The `explorer` entry point: arguments, application, exception hooks, window; nothing heavy before first paint."""

from __future__ import annotations

import os
import sys

# Before anything else is imported: `python -m` puts the current folder first on the path, and whatever lies there
# (a `json.py` in a folder of data) would be run instead of Python's own. Processes started from here inherit it.
_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
try:
    _HERE = os.path.realpath(".")
except OSError:  # the folder is gone
    _HERE = ""
if _HERE != _ROOT:
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != _HERE]
    # A `sitecustomize.py` there has been run if PYTHONPATH names the current folder; it is not run again in others.
    _KEPT = [
        one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and os.path.realpath(one) != _HERE
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join(_KEPT)
os.environ["PYTHONSAFEPATH"] = "1"

import argparse
import gc
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from trainer.distribution.version_option import VersionOption
from trainer.untrusted.terminal import say

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

LINK: Final = "contrastive-explorer:"
"""How a link to a view begins."""
TRACE: Final = "CONTRASTIVE_EXPLORER_TRACE"
"""Environment variable; when it is set, the milliseconds from the start of the process to the first paint, and to the
last view built, are printed to standard error."""


def main(argv: Sequence[str] | None = None) -> int:
    """Open the window of a workspace and return the exit code once it is closed; 2 means it could not be opened."""
    options = read_options(sys.argv[1:] if argv is None else argv)
    if (problem := take_path(options)) is not None:
        say(f"explorer: {problem}", error=True)
        return 2
    gc.disable()  # until `GarbageCollector` collects: a start makes little garbage, and looking for it is 4 % of it
    from explorer.event_loop.qt_import import import_qt

    import_qt()
    from explorer.window.single_instance import claim, raise_running_window
    from trainer.config.default_paths import default_workspace
    from trainer.untrusted.local_settings import load_elsewhere

    load_elsewhere()
    if "://" in str(options.workspace):  # a path where one was double-clicked
        return _run_mirror(options)
    folder = Path(options.workspace or default_workspace()).expanduser().resolve()
    if is_only_read(folder):
        from trainer.store import derived

        # Nothing is written, so it is in nobody's way: no lock, and the log elsewhere.
        return _run(folder, options, log_folder=derived.root(folder))[0]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_writable(folder)
    except OSError as error:
        say(
            f"explorer: the workspace {folder} cannot be written ({error.strerror or error}). "
            "Choose another with --workspace DIR.",
            error=True,
        )
        return 2
    lock = claim(folder)
    if lock is None:
        heard = raise_running_window(folder, options.open)
        say(
            "explorer: a window of this workspace is already open"
            + (" and was brought to the front." if heard else ", but it does not respond. Close it, then start again.")
            + " Use --workspace DIR to open another workspace.",
            error=True,
        )
        return 0 if heard else 2
    try:
        status, again = _run(folder, options, log_folder=folder)
    finally:
        lock.unlock()
    if again:
        _restart(folder)
    return status


def _run_mirror(options: argparse.Namespace) -> int:
    """Open the window of a workspace of another computer, which a process mirrors until the window is closed."""
    from trainer.errors import UserError
    from trainer.places.workspace_mirror import mirror_folder
    from trainer.store import derived
    from trainer.untrusted import confined, safe_subprocess

    try:
        folder = mirror_folder(options.workspace)
    except (UserError, OSError) as error:
        say(f"explorer: {error}", error=True)
        return 2
    arguments = ("-m", "trainer", "places", "mirror", options.workspace, "--while-pid", str(os.getpid()))
    with confined.open_file(folder, "mirror.log", "ab") as log:
        process = safe_subprocess.start(
            safe_subprocess.python(*arguments), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        return _run(folder, options, log_folder=derived.root(folder))[0]
    finally:
        process.terminate()
        process.wait()


def take_path(options: argparse.Namespace) -> str | None:
    """Turn what was double-clicked into a link, a workspace or a file to open; return why it cannot be."""
    from trainer.config.default_paths import workspace_at

    path_text = options.path
    if path_text is None:
        return None
    if path_text.startswith(LINK):
        options.open = path_text
        return None
    if path_text.startswith("file:"):  # desktops pass files so
        from urllib.request import url2pathname

        path_text = url2pathname(urlsplit(path_text).path)
    path = Path(path_text).expanduser().absolute()
    if not path.exists():
        return f"{path} is not there. Name a workspace, an evidence bundle, pictures, data, a model or a link."
    if (folder := workspace_at(path)) is not None:
        options.workspace = folder
    else:
        options.open = path.as_uri()
    return None


def _restart(folder: Path) -> None:
    """Start another window of the workspace, which reads what this one has saved."""
    from trainer.untrusted.safe_subprocess import python, start

    start(python("-m", "explorer", "--workspace", str(folder)), start_new_session=True)


def _check_writable(folder: Path) -> None:
    """Check that files can be created in the folder; raise OSError if not."""
    from trainer.untrusted import confined

    confined.remove(folder, ".writable")  # also a link at its place: what that points to stays
    confined.write(folder, ".writable", b"")
    confined.remove(folder, ".writable")


def is_only_read(folder: Path) -> bool:
    """Return whether the folder is the sample, or a workspace on a disk that takes nothing or of another user."""
    from trainer.config.default_paths import DATABASE, is_sample

    if is_sample(folder):
        return True
    parts = [path for path in (folder, folder / DATABASE, folder / "runs") if path.exists()]
    if len(parts) < 2 or all(_is_plainly_mine(path) for path in parts):
        return False
    # The store takes half a second to load: only for what is not plainly one's own.
    from trainer.store import ownership

    return ownership.state_of(folder, folder / DATABASE) in ("other user", "read only")


def _is_plainly_mine(path: Path) -> bool:
    return os.access(path, os.W_OK) and (not hasattr(os, "geteuid") or path.stat().st_uid == os.geteuid())


def _run(folder: Path, options: argparse.Namespace, *, log_folder: Path) -> tuple[int, bool]:
    """Return the exit code, and whether the window is to be opened again."""
    from PySide6.QtCore import QTimer
    from PySide6.QtGui import QIcon
    from PySide6.QtWidgets import QApplication

    from explorer import theme
    from explorer.event_loop.exception_hooks import Hooks
    from explorer.event_loop.garbage_collector import GarbageCollector
    from explorer.intents import OpenLink
    from explorer.state.settings import Settings
    from explorer.theme.icons import assets
    from explorer.window import MOTION_KEY, THEME_KEY, Window
    from explorer.window.sample_window import window_on_sample
    from explorer.window.zoom import ZOOM_KEY, set_scale, zoom_of
    from trainer.config.default_paths import is_sample, user_folder

    if options.safe:
        # Neither drivers nor compiled code: what the window then draws, it draws slowly and by itself.
        os.environ.update(QT_OPENGL="software", QT_XCB_GL_INTEGRATION="none")
        os.environ["CONTRASTIVE_EXPLORER_WITHOUT_KERNELS"] = "1"
    interrupted: list[bool] = []
    # From here on Ctrl-C is no exception: raised in a function that Qt calls, it would end nothing.
    signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
    remembered = Settings(user_folder(), remember=not options.safe)
    set_scale(zoom_of(remembered.value(ZOOM_KEY)))  # before the application is made, which reads it
    application = QApplication.instance() or _application(QApplication)
    application.setApplicationName("Contrastive Explorer")
    application.setDesktopFileName("contrastive-explorer")
    application.setWindowIcon(QIcon(str(assets() / "icons" / "contrastive-explorer.svg")))
    hooks = Hooks(log_folder)
    hooks.install()
    # Dressed first: widgets that are built before the fonts are there keep others.
    mode = options.theme or remembered.value(THEME_KEY)
    theme.theme().reduced_motion = remembered.value(MOTION_KEY) is True
    theme.theme().apply(application, mode if mode in ("light", "dark") else "system")
    if options.plugin:
        from trainer import plugins

        plugins.name_files(options.plugin)
    window = (
        window_on_sample(Window, hooks, safe=options.safe)
        if is_sample(folder)
        else Window(folder, hooks, safe=options.safe)
    )
    if options.reset:
        window.forget()
    if options.open:
        window.router.send(OpenLink(options.open))
    window.painted.connect(lambda: _trace("first paint"))
    window.ready.connect(lambda: _trace("all views built"))
    garbage = GarbageCollector(begin=False)
    window.ready.connect(garbage.keep_what_is_there)
    # Ctrl-C in the terminal closes the window without a question; the status bar's timer lets Python see it. By a
    # timer: a window that is closed before the event loop runs would leave that loop without an end.
    signal.signal(signal.SIGINT, lambda *_: QTimer.singleShot(0, window.close))
    # Qt does not leave by itself when the window is closed while its views are being built.
    application.lastWindowClosed.connect(application.quit)
    window.show()
    if interrupted:
        QTimer.singleShot(0, window.close)
    status = application.exec()
    garbage.close()
    hooks.remove()
    return status, window.opens_again


def _application(make: Callable[[list[str]], QApplication]) -> QApplication:
    """Return the application; end the program with a sentence where Qt has no screen, for which Qt would abort."""
    from PySide6.QtCore import QtMsgType, qInstallMessageHandler

    said: list[str] = []

    def hear(kind: QtMsgType, _context: object, message: str) -> None:
        if kind != QtMsgType.QtFatalMsg:
            said.append(message)
            return
        print(f"explorer: {_no_screen(said[0] if said else message)}", file=sys.stderr, flush=True)
        os._exit(2)

    before = qInstallMessageHandler(hear)
    application = make(sys.argv[:1])
    qInstallMessageHandler(before)
    for line in said:
        print(line, file=sys.stderr)
    return application


def _no_screen(message: str) -> str:
    """Return why there is no window, by the environment and by Qt's message."""
    chosen = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0]
    commands = "or work without a window: trainer --help lists the commands."
    displays = {name: os.environ.get(name, "") for name in ("DISPLAY", "WAYLAND_DISPLAY")}
    if sys.platform.startswith("linux") and not any(displays.values()) and chosen in ("", "xcb", "wayland"):
        return (
            "There is no screen to open a window on: neither DISPLAY nor WAYLAND_DISPLAY is set. Start it in a desktop "
            f"session, {commands}"
        )
    display = ", ".join(f"{name}={value}" for name, value in displays.items() if value) or "this screen"
    reason = message.strip().partition("\n")[0].rstrip(".")
    return f"Qt cannot open a window on {display} ({reason}). Check that this screen can be reached, {commands}"


def read_options(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line; with `--sample` the workspace is the sample."""
    from trainer.config.default_paths import sample_workspace

    parser = argparse.ArgumentParser(
        prog="explorer",
        description="Explore what contrastive models learn: train, inspect the geometry, compare, decide.",
    )
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH|LINK",
        help="open a workspace, an evidence bundle, pictures, data, vectors, curves or a model, as if dropped",
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--workspace",
        metavar="DIR",
        help="folder of runs (default: the user's own); ssh://host/path of another computer is mirrored, read-only",
    )
    about = "look at the two finished runs that come with this program"
    either.add_argument("--sample", dest="workspace", action="store_const", const=str(sample_workspace()), help=about)
    parser.add_argument(
        "--open", nargs="?", const="", default="", metavar="LINK", help="show a view: contrastive-explorer://open?…"
    )
    parser.add_argument(
        "--theme", choices=("system", "light", "dark"), help="theme of this window (default: the saved choice)"
    )
    parser.add_argument("--reset", action="store_true", help="reset window size, view and selection; a backup is kept")
    parser.add_argument("--safe", action="store_true", help="safe mode: no saved settings, no compilation, no warm-up")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="FILE", help="load a plug-in from a Python file; repeatable"
    )
    parser.add_argument("--version", action=VersionOption)
    return parser.parse_args(argv)


def _trace(what: str) -> None:
    if os.environ.get(TRACE):
        from explorer.event_loop.process_age import process_age_s

        say(f"explorer: {what} after {1000 * process_age_s():.0f} ms", error=True)


if __name__ == "__main__":
    sys.exit(main())
