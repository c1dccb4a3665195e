"""Presets: configurations of runs that come with the application, or that a person has saved. Imports no torch.

A person's own presets lie in this user's configuration, never in a workspace.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from pathlib import Path
from typing import Final

from trainer import config
from trainer.config import default_paths
from trainer.untrusted import confined

USER_PRESETS: Final = "presets"
_PRESET_NAME: Final = re.compile(r"\w[\w .-]{0,59}")
DEMO: Final = {
    "clip-scenes": "CLIP demo",
    "cloob-scenes": "CLOOB demo",
    "infoloob-scenes": "InfoLOOB demo",
    "cloob-half-scenes": "Half CLOOB demo",
}
"""Preset -> name of the demo runs in the order they train, equal but for the objective.

First the two that are compared; InfoLOOB and half of the retrieval then show what the bound and the retrieval do.
"""


def user_presets() -> dict[str, config.Run]:
    """Return name -> run of this user's saved presets, by name, without unreadable ones."""
    runs = {}
    for path in sorted((default_paths.user_folder() / USER_PRESETS).glob("*.toml")):
        with contextlib.suppress(config.ConfigError, OSError):
            runs[path.stem] = config.read(path)
    return runs


def save_preset(name: str, run: config.Run) -> None:
    """Save a run as a preset of this user, replacing an earlier one with that name.

    Raises:
        ConfigError: The name cannot be one, or the preset cannot be written.
    """
    name = name.strip()
    if not _PRESET_NAME.fullmatch(name):
        raise config.ConfigError("A preset's name has 1 to 60 letters, digits, spaces, dots, - or _.")
    if name in presets():
        raise config.ConfigError(f"{name} is a preset of the application: choose another name.")
    try:
        folder = confined.make_folder(default_paths.user_folder(), USER_PRESETS)
        confined.write(folder, f"{name}.toml", config.to_toml(run).encode("utf-8"))
    except OSError as error:
        raise config.ConfigError(
            f"The preset could not be written to {default_paths.user_folder()}: {error.strerror}."
        ) from error


def remove_preset(name: str) -> None:
    """Remove a preset of this user; bundled ones stay."""
    if _PRESET_NAME.fullmatch(name):
        confined.remove(default_paths.user_folder() / USER_PRESETS, f"{name}.toml")


def presets() -> dict[str, config.Run]:
    """Return name -> run of every bundled preset, in the order of their objectives.

    Raises:
        ConfigError: A preset is no valid run.
    """
    files = (default_paths.assets_dir() / "presets").glob("*.toml")
    runs = {path.stem: _read_as_of(path, path.stat().st_mtime_ns) for path in files}
    kinds = config.choices(config.Objective)
    return dict(sorted(runs.items(), key=lambda entry: (kinds.index(type(entry[1].objective)), entry[0])))


def demo_runs() -> dict[str, config.Run]:
    """Return preset -> configuration of the demo runs, in the order they train."""
    return {name: dataclasses.replace(preset(name), name=label) for name, label in DEMO.items()}


@functools.lru_cache(maxsize=256)
def _read_as_of(path: Path, _mtime_ns: int) -> config.Run:
    return config.read(path)


def preset(name: str) -> config.Run:
    """Return the run of one preset.

    Raises:
        ConfigError: No preset is called so.
    """
    bundled, personal = default_paths.assets_dir() / "presets", default_paths.user_folder() / USER_PRESETS
    path = bundled / f"{name}.toml"
    names = sorted(p.stem for folder in (bundled, personal) for p in folder.glob("*.toml"))
    if name in names and not path.is_file():
        return config.read(personal / f"{name}.toml")
    if name not in names:
        raise config.ConfigError(
            f"There is no preset {name!r}; choose one of {', '.join(names) or '(none installed)'}."
        )
    return config.read(path)
