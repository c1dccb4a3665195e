"""Other words that commands are looked for by: those of other tools, and what a command is wanted for."""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QAction

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "newRun": ("Train", "Start a run", "Fit", "Create run"),
    "watchTraining": ("open_clip logs", "Lightning", "transformers Trainer", "Companion", "Follow", "Monitor"),
    "startDemo": ("Example", "Sample", "Try it"),
    "showSettingsAction": ("Preferences", "Options", "Configuration", "Appearance"),
    "theme-dark": ("Dark mode", "Night mode", "Appearance"),
    "theme-light": ("Light mode", "Appearance"),
    "theme-system": ("Appearance",),
    "showMethod": ("Tutorial", "Documentation", "Manual", "How does this work", "Formula", "Paper"),
    "showKeysAction": ("Shortcuts", "Keyboard", "Hotkeys"),
    "changeKeys": ("Shortcuts", "Keyboard", "Hotkeys", "Customize"),
    "exportFigure": ("Save figure", "SVG", "PDF", "PNG", "CSV", "Parquet", "Download"),
    "exportBundle": ("Report", "Archive", "Share", "Supplement"),
    "copyLink": ("Share", "URL"),
    "evaluate-action-go": ("Accuracy", "Zero-shot accuracy", "Measure", "Benchmark", "Linear probe"),
    "goTo-evaluate": ("Accuracy", "Zero-shot accuracy"),
    "goToPlace-evaluate": ("Accuracy", "Zero-shot accuracy"),
    "goTo-map": ("Color", "Scatter", "Clusters"),
}
"""Object name of an action -> its other names."""


def synonyms_of(action: QAction) -> tuple[str, ...]:
    """Return the other names of a command, and what its tool tip says of it: the question of a chart."""
    tip = action.toolTip()
    return (*SYNONYMS.get(action.objectName(), ()), *((tip,) if tip != action.text().replace("&", "") else ()))
