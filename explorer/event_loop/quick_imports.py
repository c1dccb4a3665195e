"""Make the imports of a start quicker, which are half of its processor time."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from typing import Any, Final

_WRITES_STUBS: Final = "shibokensupport.signature.lib.pyi_generator"
_RARELY_CALLED: Final = ("__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")


def quicken_imports() -> None:
    """Import Qt without PySide's own `import`, and let dataclasses that are defined from now on compile less."""
    _import_qt()
    _compile_methods_late()


def _import_qt() -> None:
    """Import PySide, and give back Python's own `import` where PySide came first here.

    PySide's would read the source of each module that is imported from then on and search it for "PySide6", for the
    case that one asks for snake_case names by `from __feature__ import`; none here does. It is 5 % of a start. It would
    also compile at each start the text of a module that writes stubs for editors: 3 % of what precedes the first paint.
    """
    python_import = builtins.__import__
    sys.modules.setdefault(_WRITES_STUBS, module_from_spec(ModuleSpec(_WRITES_STUBS, None)))
    import PySide6.QtCore  # noqa: F401

    builtins.__import__ = python_import


def _compile_methods_late() -> None:
    """Compile at its first call what `dataclass` would compile at once, except `__init__`.

    Python before 3.13 compiles up to six functions of each class one by one: 3,300 in a start, of which few are ever
    called: a tenth of a start. Later versions compile those of a class together; nothing is changed there.
    """
    at_once: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
    if at_once is None or at_once.__module__ == __name__:
        return

    def create(name: str, *code: Any, **scope: Any) -> Callable[..., Any]:
        compiled = functools.cache(functools.partial(at_once, name, *code, **scope))
        if name not in _RARELY_CALLED:
            return compiled()

        def method(*arguments: object) -> object:
            return compiled()(*arguments)

        method.__name__ = name
        return method

    dataclasses._create_fn = create  # type: ignore[attr-defined]
