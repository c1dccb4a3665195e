"""Persistent window settings: a JSON file in each workspace.

Not Qt's own settings: those wait, on the GUI thread and without an end, for whoever holds the lock beside their file.
"""

from __future__ import annotations

import json
import math
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QByteArray, QObject, QTimer

from trainer.untrusted import confined

FILE: Final = "explorer.json"
SOON_MS: Final = 1_000
LARGEST: Final = 20_000_000
"""Bytes; a larger file is none of ours."""


class Settings(QObject):
    """Saved values by key (`window/geometry`, `runs/splitter`); unreadable ones count as missing.

    Attributes:
        damaged: Where a file was put that could not be read; None if all was well.
    """

    def __init__(self, folder: Path, parent: QObject | None = None, *, remember: bool = True) -> None:
        """Load the settings; with `remember` False, nothing is loaded or saved."""
        super().__init__(parent)
        self.file = folder / FILE
        self._stored = _settings_file(self.file) if remember else _SettingsFile(None)
        self.damaged = self._stored.damaged
        weakref.finalize(self, self._stored.write)
        self._soon = QTimer(self, singleShot=True, interval=SOON_MS, timeout=self.write_beside)

    def value(self, key: str, default: Any = None) -> Any:
        """Return the value saved under `key`, any JSON type; `default` if its type differs."""
        stored = self._stored.values.get(key)
        return stored if default is None or _alike(stored, default) else default

    def set(self, key: str, value: Any) -> None:
        """Save a JSON-compatible value."""
        # As it will be read: tuples as lists, keys as words.
        self._stored.values[key] = json.loads(json.dumps(value))
        self._stored.changed = True
        self._soon.start()

    def state(self, key: str) -> QByteArray:
        """Return a widget's saved state (such as `QSplitter.saveState`); empty if there is none."""
        text = self.value(key)
        return QByteArray.fromBase64(text.encode("ascii", "ignore")) if isinstance(text, str) else QByteArray()

    def set_state(self, key: str, state: QByteArray) -> None:
        """Save a widget's state."""
        self.set(key, bytes(state.toBase64().data()).decode("ascii"))

    def forget(self) -> Path | None:
        """Reset all settings and return the path of the backup, or None if there was nothing."""
        backup = self._stored.put_aside("before-reset")
        self._stored.values.clear()
        self._stored.changed = True
        self.flush()
        return backup

    def write_beside(self) -> None:
        """Write the file on a thread."""
        self._stored.write_beside()

    def flush(self) -> bool:
        """Write the file now; return False on failure, which is retried with the next change."""
        return self._stored.write()


class _SettingsFile:
    """The values of one file, shared by all users of it in this process."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.changed = file, False
        self.values: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._newest = self._written = 0
        self.damaged: Path | None = None
        if file is not None:
            self._read(file)

    def _read(self, file: Path) -> None:
        try:
            values = json.loads(confined.read(file.parent, file.name, LARGEST))
            if not isinstance(values, dict):
                raise ValueError("no settings")
            self.values = values
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError):
            self.damaged = self.put_aside("damaged")

    def put_aside(self, why: str) -> Path | None:
        """Move the file to a name that states the reason; None if there is no file or it cannot be moved."""
        if self.file is None or not self.file.is_file():
            return None
        aside = self.file.with_name(f"{self.file.stem}-{why}-{time.strftime('%Y-%m-%d-%H%M%S')}{self.file.suffix}")
        try:
            confined.replace(aside.parent, self.file.name, aside.name)
        except OSError:
            return None
        return aside

    def write(self) -> bool:
        """Write the file now; return False on failure."""
        if self.file is None or not (self.changed or self._written < self._newest):
            return True
        return self._put(*self._taken())

    def write_beside(self) -> None:
        """Write the file on a thread, because a busy disk may take up to a second."""
        if self.file is not None and self.changed:
            # No daemon: a program that ends waits for it.
            threading.Thread(target=self._put, args=self._taken(), name="settings").start()

    def _taken(self) -> tuple[int, str]:
        self._newest += 1
        self.changed = False
        return self._newest, json.dumps(self.values)

    def _put(self, version: int, text: str) -> bool:
        assert self.file is not None
        with self._lock:
            if version < self._written:
                return True
            draft = self.file.with_suffix(".tmp")
            try:
                confined.remove(draft.parent, draft.name)  # a link at its place: what that points to stays
                confined.write(draft.parent, draft.name, text.encode("utf-8"))
                confined.replace(draft.parent, draft.name, self.file.name)
            except OSError:
                self.changed = True
                return False
            self._written = version
            return True


_OPEN: Final[weakref.WeakValueDictionary[Path, _SettingsFile]] = weakref.WeakValueDictionary()


def _settings_file(file: Path) -> _SettingsFile:
    settings_file = _OPEN.get(file)
    if settings_file is None:
        settings_file = _OPEN[file] = _SettingsFile(file)
    return settings_file


def _alike(value: Any, default: Any) -> bool:
    """Return whether the type of `value` matches that of `default`."""
    if isinstance(value, int) and abs(value) >= 2**31:
        return False  # nothing that is counted here; Qt could not take it
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if isinstance(default, tuple):
        default = list(default)
    return type(value) is type(default)
