"""Load plug-ins once per process; one that cannot be loaded is reported and left out."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from trainer import config
from trainer.config.extension import BASES
from trainer.errors import UserError
from trainer.untrusted.files import check_ordinary

GROUPS: Final[dict[str, str]] = {
    "objective": "contrastive_explorer.objectives",
    "data": "contrastive_explorer.datasets",
    "model": "contrastive_explorer.towers",
    "chart": "contrastive_explorer.charts",
    "metrics": "contrastive_explorer.metrics",
}
"""What a plug-in adds -> the entry-point group that it registers."""
NAMES: Final[dict[str, str]] = {
    "objective": "OBJECTIVE",
    "data": "DATASET",
    "model": "TOWERS",
    "chart": "CHART",
    "metrics": "METRICS",
}
"""What a plug-in adds -> the name under which a file has it."""
FILES: Final = "CONTRASTIVE_EXPLORER_PLUGINS"
"""Environment variable: files of plug-ins, separated as in PATH; `--plugin` adds to it."""
_HEAVY: Final = ("torch", "torchvision", "open_clip")

Metrics = Callable[[Any, Any], dict[str, float]]


@dataclass
class LoadedPlugins:
    """What was loaded in this process."""

    charts: dict[str, Any] = field(default_factory=dict)  # Name -> chart.
    # Name of the plug-in -> function of unit image and text embeddings (either may be None) to numbers.
    metrics: dict[str, Metrics] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)  # A sentence for each plug-in that could not be loaded.
    sources: dict[str, str] = field(default_factory=dict)  # Kind of an added section -> the plug-in it came from.


_LOADED = LoadedPlugins()
_DONE: set[str] = set()


def loaded() -> LoadedPlugins:
    """Return what this process has loaded."""
    return _LOADED


def failures() -> list[str]:
    """Return a sentence for each plug-in that could not be loaded."""
    return list(_LOADED.failures)


def name_files(files: Sequence[str | Path]) -> None:
    """Add files to the environment, so that they are loaded here and in the processes started from here."""
    named = [part for part in os.environ.get(FILES, "").split(os.pathsep) if part]
    added = [str(Path(file).expanduser().absolute()) for file in files]
    if added:
        os.environ[FILES] = os.pathsep.join(dict.fromkeys([*named, *added]))


def load_all() -> LoadedPlugins:
    """Load every plug-in that is installed or named and was not loaded yet; none of them raises."""
    for name, what, read in _found():
        if name not in _DONE:
            _DONE.add(name)
            try:
                _take(what, read(), name)
            except (Exception, SystemExit) as error:  # whatever the code of another package raises
                reason = str(error).rstrip(".") or type(error).__name__
                _LOADED.failures.append(
                    f"The plug-in {name} could not be loaded: {reason}. Everything else works; repair or remove it."
                )
    return _LOADED


def _found() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield the name of each plug-in, what it adds (empty: a file says), and a function that loads it."""
    entries = _installed(tuple(sys.path))
    for what, group in GROUPS.items():
        for entry in entries.select(group=group):
            yield f"{entry.name} of {_package(entry)}", what, partial(_without_torch, entry.load)
    for text in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        yield Path(text).name, "", partial(_without_torch, partial(module_of, Path(text)))


@lru_cache(maxsize=1)
def _installed(_: tuple[str, ...]) -> Any:  # EntryPoints, which typeshed knows from Python 3.12 on
    """Return what is installed below these folders, all at once: each call reads what every package says of itself."""
    return entry_points()


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


class _Source(SourceFileLoader):
    """Compiles what stands in the file, and neither reads nor writes a `__pycache__` next to it.

    Python runs a compiled file without looking at the source if it says so: who was given both would have read one and
    run the other.
    """

    def get_code(self, fullname: str) -> Any:
        """Return the code of the file."""
        return self.source_to_code(self.get_data(self.path), self.path)


def module_of(file: Path) -> ModuleType:
    """Return what a Python file defines, compiled from its source.

    Raises:
        UserError: Its name does not end in `.py`.
        OSError: It is no ordinary file: a pipe would be waited for.
        Exception: Whatever its code raises.
    """
    if file.suffix != ".py":
        raise UserError("it is not a Python file: its name does not end in .py")
    check_ordinary(file)
    name = f"contrastive_explorer_plugin_{file.stem}"
    loader = _Source(name, str(file))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _NoTorch:
    """A finder that refuses torch: the window must not import it, and a plug-in is loaded there, too."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in _HEAVY:
            raise UserError(f"it imports {name} when it is loaded: import it inside of its functions")


def _without_torch(load: Callable[[], Any]) -> Any:
    if "torch" in sys.modules:
        return load()
    guard = _NoTorch()
    sys.meta_path.insert(0, guard)  # type: ignore[arg-type]
    try:
        return load()
    finally:
        sys.meta_path.remove(guard)  # type: ignore[arg-type]


def _take(what: str, thing: Any, name: str) -> None:
    """Register what was loaded: one thing of an entry point, or all that a file names."""
    if what:
        _register(what, thing, name)
        return
    held = {key: getattr(thing, attribute) for key, attribute in NAMES.items() if hasattr(thing, attribute)}
    if not held:
        raise UserError(f"it defines none of {', '.join(NAMES.values())}")
    for key, value in held.items():
        _register(key, value, name)


def _register(what: str, thing: Any, name: str) -> None:
    if what == "chart":
        _LOADED.charts[str(thing.name)] = thing
    elif what == "metrics":
        if not callable(thing):
            raise UserError("METRICS is not a function of image and text embeddings")
        _LOADED.metrics[name] = thing
    else:
        _add_section(what, thing, name)


def _add_section(section: str, kind: Any, name: str) -> None:
    """Add a dataclass to those that a section of the configuration may hold."""
    base = BASES[section]
    fits = isinstance(kind, type) and issubclass(kind, base) and dataclasses.is_dataclass(kind)
    if not fits:
        raise UserError(f"its {NAMES[section]} is not a dataclass that derives from {base.__name__}")
    if not (kind.kind and kind.label):
        raise UserError(f"{kind.__name__} needs a kind and a label")
    if any(entry.kind == kind.kind for entry in (*config.SECTIONS[section], *config.ELSEWHERE.get(section, ()))):
        raise UserError(f"there is another {section} of the kind {kind.kind!r}: choose another name")
    # A field without a label, or a default out of its own bounds, would fail later and elsewhere.
    missing = [entry.name for entry in dataclasses.fields(kind) if "label" not in entry.metadata]
    if missing:
        raise UserError(f"its field {missing[0]!r} is not made by option(default, label, help)")
    config.check_fields(kind(), section)
    config.SECTIONS[section] = (*config.SECTIONS[section], kind)
    _LOADED.sources[kind.kind] = name
    kind.plugin = name
