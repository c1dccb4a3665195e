"""The compiled kernels once they are there: what draws asks here, `loading` brings them."""

from __future__ import annotations

from types import ModuleType

_loaded: list[ModuleType] = []


def loaded_kernels() -> ModuleType | None:
    """The compiled kernels if they are there already."""
    return _loaded[0] if _loaded else None


def keep_kernels(module: ModuleType) -> None:
    """Makes the warm kernels known to whoever draws from now on."""
    _loaded[:] = [module]
