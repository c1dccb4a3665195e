"""Coordinates that another program computed: shown as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from trainer.project.fitting import ProjectError

SUFFIXES: Final = (".npy", ".csv", ".tsv", ".parquet")


def read_coordinates(file: Path) -> Float[np.ndarray, "m 2"]:
    """The x and y of every row, in float32: a `.npy` of two columns, or a table with columns `x` and `y`.

    Raises:
        ProjectError: The file is missing, of another kind, has no such columns, or something else than numbers in them.
    """
    file = Path(file)
    if file.suffix.lower() not in SUFFIXES:
        raise ProjectError(f"{file.name}: coordinates are read from {', '.join(SUFFIXES)}.")
    try:
        points = _read(file)
    except ProjectError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProjectError(f"The coordinates in {file} cannot be read: {error}.") from error
    bad = int((~np.isfinite(points)).any(1).sum())
    if bad:
        raise ProjectError(f"{bad:,} rows of {file.name} have no number for x or y: every point needs both.")
    return points


def _read(file: Path) -> Float[np.ndarray, "m 2"]:
    if file.suffix.lower() == ".npy":
        points = np.load(file, allow_pickle=False)
        if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiu":
            shape = " x ".join(map(str, points.shape))
            raise ProjectError(
                f"{file.name} holds {shape} values of {points.dtype}; two columns of numbers are needed."
            )
        return points.astype(np.float32)
    from pyarrow import ArrowException, csv, parquet

    try:
        if file.suffix.lower() == ".parquet":
            table = parquet.read_table(file)
        else:
            delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
            table = csv.read_csv(file, parse_options=csv.ParseOptions(delimiter=delimiter))
    except ArrowException as error:
        raise ProjectError(f"The coordinates in {file} cannot be read: {error}.") from error
    names = {name.strip().lower(): name for name in table.column_names}
    if not {"x", "y"} <= set(names):
        there = ", ".join(table.column_names[:8])
        raise ProjectError(f"{file.name} has no columns x and y; its columns are {there}.")
    columns = [table.column(names[axis]).to_numpy(zero_copy_only=False).astype(np.float32) for axis in ("x", "y")]
    return np.stack(columns, axis=1)
