"""Record every uncaught error in the log and report it in the window, at most once in ten seconds."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import io
import logging
import logging.handlers
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

import shiboken6
from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

from trainer.errors import reason_words
from trainer.untrusted import confined

LOG: Final = "explorer.log"
CRASH: Final = "crash.log"
EVERY_S: Final = 10.0
"""A slot that fails at every mouse move must not bury the window in messages; the log has them all."""

CRASHES_KEPT: Final = 5

_log = logging.getLogger("explorer")


class Hooks(QObject):
    """Catches exceptions of the GUI thread, other threads and finalizers, as well as Qt's warnings.

    Attributes:
        caught_count: How many errors came, shown or not; journeys assert that it is 0.
        crash: What the interpreter wrote when the last window of this folder crashed, and what the log said before;
            empty if it did not.
    """

    # A summary and the whole story, to be shown; sent from any thread, at most every ten seconds.
    caught = Signal(str, str)

    def __init__(self, folder: Path) -> None:
        """Open the log in `folder` without installing any hook yet."""
        super().__init__()
        self.log_file = folder / LOG
        self.caught_count = 0
        self._last_shown = float("-inf")
        self._lock = threading.Lock()
        self.log_handler = _handler(self.log_file)
        self.log_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._crash_file = folder / CRASH
        crash = _read(self._crash_file)
        self.crash = f"{crash}\n\nThe log before it:\n{self.last_lines()}" if crash else ""
        self._crash_out: IO[str] | None = None
        self._before: tuple[Any, Any, Any] | None = None

    def install(self) -> None:
        """Install the hooks: from now on every uncaught error is recorded."""
        _log.addHandler(self.log_handler)
        _log.setLevel(logging.INFO)
        self._before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
        sys.excepthook = self._exception
        threading.excepthook = lambda a: self._exception(a.exc_type, a.exc_value, a.exc_traceback)
        sys.unraisablehook = lambda a: self._exception(a.exc_type, a.exc_value, a.exc_traceback)
        qInstallMessageHandler(self._qt_message)
        folder = self._crash_file.parent
        if self.crash:
            self._keep_crash()
        try:
            self._crash_out = io.TextIOWrapper(io.BufferedWriter(confined.open_file(folder, CRASH, "wb")), "utf-8")
        except OSError:
            # A full disk, or a link at its place: exceptions are still caught, only a crash would leave no trace.
            return
        faulthandler.enable(self._crash_out)

    def remove(self) -> None:
        """Restore the previous hooks and remove the crash file if it is empty."""
        if self._before is not None:
            sys.excepthook, threading.excepthook, sys.unraisablehook = self._before
            self._before = None
            qInstallMessageHandler(None)
        if self._crash_out is not None:
            faulthandler.disable()
            self._crash_out.close()
            self._crash_out = None
            if not _read(self._crash_file):
                confined.remove(self._crash_file.parent, self._crash_file.name)
        _log.removeHandler(self.log_handler)
        self.log_handler.close()

    def last_lines(self) -> str:
        """Return the end of the log for a bug report; empty if nothing was logged."""
        return "\n".join(_read(self.log_file).splitlines()[-40:])

    def report_output(self, who: str, text: str) -> None:
        """Handle the last output of a child process like an exception of the window itself."""
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "no message")
        _log.error("%s ended: %s", who, text)
        self._show(f"{who} ended: {last.strip()}", text)

    def report(self, error: BaseException) -> None:
        """Handle a caught exception that is a bug like an uncaught one."""
        self._exception(type(error), error, error.__traceback__)

    def _exception(self, kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error or kind(), trace)
            return
        with _raised_recursion_limit():
            details = "".join(traceback.format_exception(kind, error, trace))
            self._show_message(kind, error, details)
            _let_go(error, trace)

    def _show_message(self, kind: type[BaseException], error: BaseException | None, details: str) -> None:
        _log.error("%s", details)
        print(details, file=sys.stderr, end="")
        cause = reason_words(error) if isinstance(error, OSError) else f"{kind.__name__}: {error or ''}".strip(": ")
        self._show(cause, details)

    def _qt_message(self, level: QtMsgType, _context: QMessageLogContext, message: str) -> None:
        if "propagateSizeHints" in message:
            return  # the offscreen platform says so at every window, and means nothing
        severe = level in (QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
        _log.log(logging.ERROR if severe else logging.WARNING, "Qt: %s", message)
        if severe:
            self._show("Qt reports a severe error.", message)

    def _show(self, summary: str, details: str) -> None:
        with self._lock:
            self.caught_count += 1
            now = time.monotonic()
            if now - self._last_shown < EVERY_S:
                return
            self._last_shown = now
        if shiboken6.isValid(self):  # a thread may fail after the window has gone
            self.caught.emit(summary, details)

    def _keep_crash(self) -> None:
        """Save the crash report for later bug reports and keep only the newest few."""
        folder = self._crash_file.parent
        with contextlib.suppress(OSError):
            confined.replace(folder, self._crash_file.name, f"crash-{time.strftime('%Y-%m-%d-%H%M%S')}.log")
            for old in sorted(folder.glob("crash-*.log"))[:-CRASHES_KEPT]:
                confined.remove(folder, old.name)


def _handler(file: Path) -> logging.Handler:
    """Return the log's handler; a log that is a symbolic link is not written, because its target is unknown."""
    if not confined.is_inside(file.parent, file.name):
        return logging.NullHandler()
    return _PrivateHandler(file, maxBytes=1_000_000, backupCount=2, encoding="utf-8", delay=True)


class _PrivateHandler(logging.handlers.RotatingFileHandler):
    """Writes a file that its user alone may read: captions and paths get into a log."""

    def _open(self) -> Any:
        opener = functools.partial(os.open, mode=0o600)
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=opener)


def _let_go(error: BaseException | None, trace: TracebackType | None) -> None:
    """Clear the frames of a reported error, because Python keeps the last one alive.

    A painter in them would outlive its paintEvent, and crash the window when what it paints on is gone.
    """
    traceback.clear_frames(trace)
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


@contextlib.contextmanager
def _raised_recursion_limit() -> Iterator[None]:
    """Raise the recursion limit for a moment, so that a RecursionError can be reported."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 500)
    try:
        yield
    finally:
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(limit)


def _read(file: Path) -> str:
    try:
        with confined.open_file(file.parent, file.name) as opened:
            return opened.read().decode("utf-8", errors="replace").strip()
    except OSError:
        return ""
