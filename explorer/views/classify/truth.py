"""The right label of each image, as far as the person has set it, its file name holds it, or its data say it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from explorer.state.settings import Settings
from explorer.widgets.finder import Choice
from explorer.widgets.searchable_combo_box import SearchableComboBox

KEY: Final = "classify/truth"
BY_NAME: Final = ("by name",)
"""The choice that reads the names; no label is a tuple."""
_WORD: Final = re.compile(r"[^\W_]+")
WIDTH_PX: Final = 208
MOST: Final = 5_000
"""Images whose labels are kept."""


class TruthPicker(SearchableComboBox):
    """Sets the right label of the chosen images; keeps those of all images in the settings."""

    def __init__(self, settings: Settings, paths: Callable[[], Sequence[str]]) -> None:
        """Set the labels of what `paths` returns."""
        super().__init__(name="classifyTruth", label="True label of the chosen images", width=WIDTH_PX)
        self.setPlaceholderText("Set true labels…")
        self._settings, self._paths = settings, paths
        self._labels: tuple[str, ...] = ()
        stored: Any = settings.value(KEY, {})
        self._truth: dict[str, str] = stored if isinstance(stored, dict) else {}
        self.of_data: dict[str, tuple[str, str]] = {}
        """Class and caption of images that are pictures of the runs' data."""

    def label_of(self, path: str) -> str:
        """Return the right label of an image; empty where it is not known, or none of the labels."""
        label, caption = self.of_data.get(path, ("", ""))
        answers = (self._truth.get(path, ""), label, only_label(caption, self._labels))
        return next((answer for answer in answers if answer in self._labels), "")

    def why(self, path: str) -> str:
        """Return what makes a class of the data the right label where the caption names several; empty otherwise."""
        label, caption = self.of_data.get(path, ("", ""))
        named = [each for each in self._labels if _spaced(each) in _spaced(caption)]
        if path in self._truth or label not in named or len(named) < 2:
            return ""
        first = min(named, key=lambda each: _spaced(caption).index(_spaced(each)))
        return "from the caption" if label == first else "its class in the data"

    def show_labels(self, labels: tuple[str, ...], paths: Iterable[str]) -> None:
        """Offer these labels, and show that of the chosen images; the names are offered where one says a label."""
        self._labels = labels
        chosen = {self.label_of(path) for path in self._paths()}
        choices = [Choice(BY_NAME, "From file and folder names")] if any(by_name(p, labels) for p in paths) else []
        choices += [Choice(label, f"True label: {label}") for label in labels]
        choices += [Choice("", "True label: unknown")] if any(self._truth.get(path) for path in self._paths()) else []
        self.show_choices(tuple(choices), chosen.pop() or None if len(chosen) == 1 else None)

    def keep(self, key: Any, paths: Iterable[str]) -> None:
        """Store the choice: for the chosen images, or by their names for all."""
        new = {p: by_name(p, self._labels) for p in paths} if key == BY_NAME else dict.fromkeys(self._paths(), str(key))
        merged = [(path, label) for path, label in (self._truth | new).items() if label]
        self._truth = dict(merged[-MOST:])
        self._settings.set(KEY, self._truth)


def by_name(path: str, labels: Sequence[str]) -> str:
    """Return the only label whose words are in the file's name, else in its folder's; empty if none or several are."""
    file = Path(path)
    return only_label(file.stem, labels) or only_label(file.parent.name, labels)


def only_label(text: str, labels: Sequence[str]) -> str:
    """Return the only label whose words are in a text; of "cat" and "black cat" the longer; empty otherwise."""
    held = [label for label in labels if _spaced(label) in _spaced(text)]
    longest = [label for label in held if not any(_spaced(label) in _spaced(other) for other in held if other != label)]
    return longest[0] if len(longest) == 1 else ""


def _spaced(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
