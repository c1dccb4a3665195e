"""Tables as pandas data frames; pandas is an optional dependency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainer.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


class MissingPandas(UserError):
    """pandas is not installed; the message says how to install it."""


def frame(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return a data frame with these columns.

    Raises:
        MissingPandas: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingPandas(
            "Tables need pandas, which is not installed. Install it: pip install 'contrastive-explorer[notebook]'"
        ) from None
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


def frame_of_rows(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Return a data frame with these rows.

    Raises:
        MissingPandas: pandas is not installed.
    """
    return frame({name: [row[column] for row in rows] for column, name in enumerate(header)})
