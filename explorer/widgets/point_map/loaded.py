"""The compiled kernels once loaded: drawing code gets them here, `loading` provides them."""

from __future__ import annotations

from types import ModuleType

_loaded: list[ModuleType] = []


def loaded_kernels() -> ModuleType | None:
    """Return the compiled kernels if they are loaded."""
    return _loaded[0] if _loaded else None


def keep_kernels(module: ModuleType) -> None:
    """Publish the loaded kernels to all drawing code."""
    _loaded[:] = [module]
