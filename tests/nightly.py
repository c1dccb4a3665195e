"""Parameters of which the plain suite tries a few, and the nightly tests all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def nightly_except(values: Iterable[Any], *plain: Any) -> list[Any]:
    """Return all values for `parametrize`, nightly but for the few; a list of values is one for each argument."""
    return [_nightly(value) if value not in plain else value for value in values]


def _nightly(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, list) else [value]), marks=pytest.mark.nightly)
