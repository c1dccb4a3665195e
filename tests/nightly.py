"""Parameters of which the plain suite tries a few, and the nightly tests all."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def nightly_except(values: Iterable[Any], *plain: Any) -> list[Any]:
    """Return all values for `parametrize`, nightly but for the few; a list of values is one for each argument."""
    return [_nightly(value) if value not in plain else value for value in values]


def few_plain(plain: int, names: str | Sequence[str], values: Iterable[Any], **options: Any) -> pytest.MarkDecorator:
    """Return `pytest.mark.parametrize` of which only the first `plain` values belong to the plain suite."""
    several = not isinstance(names, str) or "," in names

    def nightly(value: Any) -> Any:
        param = value if isinstance(value, type(pytest.param())) else pytest.param(*(value if several else [value]))
        return param._replace(marks=[*param.marks, pytest.mark.nightly])

    listed = list(values)
    return pytest.mark.parametrize(names, [*listed[:plain], *map(nightly, listed[plain:])], **options)


def _nightly(value: Any) -> Any:
    return pytest.param(*(value if isinstance(value, list) else [value]), marks=pytest.mark.nightly)
