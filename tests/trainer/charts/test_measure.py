"""The layer of charts: tables of measures, printed columns, and snapshots that are opened once."""

import math

import pytest

from trainer.charts import ChartError
from trainer.charts.measure import FACTS, Measure, facts_of, filled, measure_table
from trainer.charts.opened_snapshot import open_target, open_targets
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.spec import Request, Target

RUN = SnapshotLabel(run=3, name="a", objective="clip", step=20, dataset="scenes", split="val")


def test_a_table_has_a_row_per_measure_and_a_column_per_run():
    measures = (Measure[int]("Square", "x²", lambda x: x * x, 0), Measure[int]("Name", "", lambda x: f"#{x}"))
    table = measure_table("t", "T", ("a", "b", "c"), measures, [2, None, 3], badges=False)
    assert [line.words for line in table.lines] == ["Square", "Name"]
    assert table.lines[0].values[::2] == (4.0, 9.0)
    assert math.isnan(table.lines[0].values[1])
    assert table.lines[1].values[0] == "#2"
    assert (table.columns, table.badges) == (("a", "b", "c"), False)


def test_facts_come_first_and_rows_have_the_same_keys():
    assert list(facts_of(RUN)) == [*FACTS]
    with pytest.raises(AttributeError):
        facts_of(RUN, "n")
    first, second = filled([{"a": 1, "b": 2}, {"c": 3, "a": 4}])
    assert list(first) == list(second) == ["a", "b", "c"]
    assert math.isnan(first["c"])
    assert math.isnan(second["b"])


@pytest.mark.slow
def test_a_snapshot_is_read_on_first_use_and_once(charted, monkeypatch):
    opened = open_target(charted, Target(1), Request())
    assert opened.label["run"] == 1
    assert opened.snapshot is opened.snapshot
    image, text = opened.both("this needs")
    assert image.shape == text.shape == (opened.row.n, opened.snapshot.d)


@pytest.mark.slow
def test_all_targets_are_opened_on_the_data_of_the_first(charted):
    both = open_targets(charted, Request((Target(1), Target(2))))
    assert len({(one.row.dataset, one.row.split) for one in both}) == 1
    with pytest.raises(ChartError, match="no snapshot at step 7"):
        open_target(charted, Target(1, 7), Request())
