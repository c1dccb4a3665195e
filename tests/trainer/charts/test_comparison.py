"""The comparison takes each split's newest evaluation and marks the best."""

from __future__ import annotations

import dataclasses

import pytest

from trainer import config
from trainer.analysis.intervals import wilson
from trainer.charts import ChartError
from trainer.charts.comparison import comparison
from trainer.metrics import metric
from trainer.store import Question, RunLog, Workspace

pytestmark = pytest.mark.slow


def test_newest_evaluations_side_by_side(charted):
    table = comparison(charted, [1, 2])
    assert [run.step for run in table.runs] == [240, 240]
    assert {row.split for row in table.rows} == {"renderings", "combinations"}
    row = next(r for r in table.rows if (r.name, r.split) == ("image_to_text_R@1", "renderings"))
    assert list(row.values) == [charted.results.last_values(i)["val/image_to_text_R@1"] for i in (1, 2)]
    assert row.n == (240, 240)
    assert row.intervals[0] == wilson(row.values[0], 240)
    assert row.best == (max((0, 1), key=lambda i: row.values[i]),)
    gap = next(r for r in table.rows if r.name == "modality_gap")
    assert gap.best == (), "no gap is better than another"
    assert gap.intervals == (None, None)


def test_captions_that_repeat_widen_the_interval_of_text_to_image(tmp_path):
    workspace = Workspace(tmp_path)
    number = workspace.runs.create(dataclasses.replace(config.Run(), name="a"))
    with RunLog.claim(workspace, number) as log:
        found = {"val/text_to_image_R@1": 0.5, "val/image_to_text_R@1": 0.5}
        asked = Question("retrieval", 480, gallery=60, protocol="240 distinct pictures")
        log.evaluation(5, "folder", "heldout", found, {"retrieval": asked})
        log.status("stopped")
    rows = {row.name: row for row in comparison(workspace, ["a"]).rows}
    assert rows["text_to_image_R@1"].intervals == (wilson(0.5, 60),)
    assert rows["image_to_text_R@1"].intervals == (wilson(0.5, 240),)
    assert {row.n for row in rows.values()} == {(480,)}


def test_ties_missing_values_and_nothing(tmp_path):
    workspace = Workspace(tmp_path)
    for name in ("a", "b", "c"):
        number = workspace.runs.create(dataclasses.replace(config.Run(), name=name))
        with RunLog.claim(workspace, number) as log:
            if name != "c":
                found = {"val/image_to_text_R@1": 0.5, "val/auc": float("nan")}
                log.evaluation(5, "folder", "heldout", found, {"retrieval": Question("retrieval", 40)})
            log.status("stopped")
    table = comparison(workspace, ["a", "b", "c"])
    recall = table.rows[0]
    assert recall.values == (0.5, 0.5, None)
    assert recall.best == (0, 1)
    assert recall.n == (40, 40, 40)
    assert table.rows[1].best == ()
    assert (table.rows[1].name, table.rows[1].metric.label) == ("auc", metric("val/auc").label), "an older row"
    assert "older" in table.rows[1].metric.label
    with pytest.raises(ChartError, match="none of c has been evaluated"):
        comparison(workspace, ["c"])
