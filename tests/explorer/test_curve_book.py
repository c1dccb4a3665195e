"""Rows of a curve may come in any order: a watched training is filled in from its newest epoch to its oldest."""

from pathlib import Path

import numpy as np
import pytest

from explorer.models.curve_book import CurveBook, read_curves
from trainer import config
from trainer.store import Workspace
from trainer.store.journal import Entry

pytestmark = pytest.mark.quick
NAME = "val/loss"


def test_late_and_repeated_rows_give_the_curve_of_the_store(tmp_path: Path) -> None:
    workspace, book, random = Workspace(tmp_path), CurveBook(), np.random.default_rng(0)
    run = workspace.runs.create(config.Run(name="late"))
    book.load(read_curves(workspace, [run], [NAME]))
    for number in range(60):
        steps, values = random.integers(40, size=3), random.choice([1.0, 2.0, np.nan], 3)
        seen, drawn = workspace.results.last_scalar_id(), book.frozen().series(run, NAME)
        copies = [array.copy() for array in drawn]
        entries = [Entry(int(step), 0.0, number, {NAME: value}) for step, value in zip(steps, values, strict=True)]
        workspace.results.add_entries(run, entries)
        rows = workspace.results.scalars_after(seen)
        book.append(rows)
        assert not book.append(rows), "rows that were read already change nothing"
        for mine, stored in zip(book.series(run, NAME), workspace.results.series(run, NAME), strict=True):
            np.testing.assert_array_equal(mine, stored)
        for array, copy in zip(drawn, copies, strict=True):
            np.testing.assert_array_equal(array, copy)
