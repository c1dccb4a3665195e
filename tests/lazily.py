"""Libraries that a file of tests compares with: every process of the tests imports every file, but runs a few."""

import importlib
import importlib.util
from typing import Any

import pytest


class _Lazily:
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest asks everything in a file for `__test__` and the like
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def lazily(name: str, *, reason: str = "") -> Any:
    """Return a module that is imported at its first use; without its library the file of tests is skipped."""
    library = name.partition(".")[0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(reason or f"{library} is not installed", allow_module_level=True)
    return _Lazily(name)
