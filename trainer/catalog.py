"""What comes with the application: presets, prompt suites, and where everything lies. Imports no torch."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer import config
from trainer.errors import UserError

WORKSPACE_VARIABLE: Final = "CONTRASTIVE_EXPLORER_WORKSPACE"


class CatalogError(UserError):
    """Something that should come with the application is missing or damaged."""


@dataclass(frozen=True)
class PromptSuite:
    """Class names and the sentences they are put into, for zero-shot classification.

    Attributes:
        name: As the file is called.
        classes: Plain class names.
        templates: Sentences with one `{}` for the class name.
        source: Where the suite is from.
        license: Under which it may be used.
    """

    name: str
    classes: tuple[str, ...]
    templates: tuple[str, ...]
    source: str
    license: str


def assets_dir() -> Path:
    """The folder of icons, presets and prompts: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "assets"
    return inside if inside.is_dir() else package.parent / "assets"


def default_workspace() -> Path:
    """The folder of runs when no `--workspace` is given: the environment's choice, else the user's data folder."""
    chosen = os.environ.get(WORKSPACE_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("contrastive-explorer", appauthor=False))


def presets() -> dict[str, config.Run]:
    """Name -> run of every preset that comes with the application, in the order of their objectives.

    Raises:
        ConfigError: A preset is no valid run.
    """
    files = (assets_dir() / "presets").glob("*.toml")
    found = {path.stem: _read_as_of(path, path.stat().st_mtime_ns) for path in files}
    kinds = config.choices(config.Objective)
    return dict(sorted(found.items(), key=lambda entry: (kinds.index(type(entry[1].objective)), entry[0])))


@functools.lru_cache(maxsize=256)
def _read_as_of(path: Path, _mtime_ns: int) -> config.Run:
    return config.read(path)


def preset(name: str) -> config.Run:
    """The run of one preset.

    Raises:
        ConfigError: No preset is called so.
    """
    path = assets_dir() / "presets" / f"{name}.toml"
    known = sorted(p.stem for p in path.parent.glob("*.toml"))
    if name not in known:
        raise config.ConfigError(
            f"There is no preset {name!r}; choose one of {', '.join(known) or '(none installed)'}."
        )
    return config.read(path)


def prompt_suites() -> dict[str, PromptSuite]:
    """Name -> suite of every prompt suite that comes with the application, sorted by name.

    Raises:
        CatalogError: A suite's file is damaged.
    """
    suites = [_read_suite(path) for path in sorted((assets_dir() / "prompts").glob("*.json"))]
    return {suite.name: suite for suite in suites}


def _read_suite(path: Path) -> PromptSuite:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return PromptSuite(
            name=str(document.get("name", path.stem)),
            classes=tuple(map(str, document["classes"])),
            templates=tuple(map(str, document["templates"])),
            source=str(document.get("source", "")),
            license=str(document.get("license", "")),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(
            f"The prompt suite {path} cannot be read ({error!r}). Install the application again."
        ) from error
