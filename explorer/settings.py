"""What the window remembers between two starts: an INI file in the workspace, so each workspace has its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QByteArray, QObject, QSettings

FILE: Final = "explorer.ini"


class Settings(QObject):
    """Remembered values by key (`window/geometry`, `runs/splitter`). Unreadable ones are as good as none."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.file = folder / FILE
        self._settings = QSettings(str(self.file), QSettings.Format.IniFormat, self)

    def value(self, key: str, default: Any = None) -> Any:
        """What was remembered under `key`: anything JSON can say."""
        text = self._settings.value(key)
        if not isinstance(text, str):
            return default
        try:
            return json.loads(text)
        except ValueError:
            return default

    def set(self, key: str, value: Any) -> None:
        """Remembers a value that JSON can say."""
        self._settings.setValue(key, json.dumps(value))

    def state(self, key: str) -> QByteArray:
        """A widget's remembered state (`QSplitter.saveState` and the like); empty if there is none."""
        text = self.value(key)
        return QByteArray.fromBase64(text.encode("ascii", "ignore")) if isinstance(text, str) else QByteArray()

    def set_state(self, key: str, state: QByteArray) -> None:
        """Remembers a widget's state."""
        self.set(key, bytes(state.toBase64().data()).decode("ascii"))

    def forget(self) -> None:
        """Nothing is remembered any more."""
        self._settings.clear()

    def flush(self) -> None:
        """Writes to the file now."""
        self._settings.sync()
