"""Packages whose `__init__` runs only when something of it is used.

The towers need three files of open_clip. Its `__init__` loads timm and transformers, torchvision's loads all of its
models, and every step of an optimizer loads torch's compiler, to end a graph there: most of a start.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from typing import Any


def defer_what_towers_do_not_need() -> None:
    """Defer packages that open_clip and torch load around the towers and their training."""
    for name in ("torchvision", "torchvision.ops", "open_clip"):
        defer(name)
    # What trains without the compiler asks it only for these two, which then do nothing.
    defer("torch._dynamo", with_init=True, graph_break=_nothing, disable=_as_it_is)


def defer(name: str, *, with_init: bool = False, **constants: Any) -> None:
    """Let `import name` succeed at once and run the package's `__init__` at the first use of one of its names.

    A package that has been imported already, or is not installed, is left as it is.

    Args:
        name: The package; those that contain it are imported or deferred already.
        with_init: Whether its modules need its `__init__`, too; otherwise they are imported without.
        constants: Names that are answered without running anything, until something else is used.
    """
    try:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
    except ModuleNotFoundError:  # what contains it is not installed
        return
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    loader, values, lock = spec.loader, vars(module), threading.RLock()
    begun: list[bool] = []

    def run(attribute: str) -> Any:
        private = attribute.startswith("_") and attribute not in ("__version__", "__path__")  # inspectors ask for some
        with lock:  # another thread waits until all names are there
            if not private and not begun:
                begun.append(True)
                values["__path__"] = spec.submodule_search_locations
                loader.exec_module(module)
                del values["__getattr__"]
        if attribute in values:
            return values[attribute]
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    values.update(constants, __getattr__=run)
    if with_init:
        del values["__path__"]  # the import of a module looks for it first
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _as_it_is(function: Any = None, *_: Any, **__: Any) -> Any:
    return (lambda later: later) if function is None else function
