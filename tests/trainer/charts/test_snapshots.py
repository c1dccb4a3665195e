"""The snapshot chosen by a chart for a missing or invalid request."""

import pytest

from trainer import config
from trainer.charts import ChartError
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace


def test_the_last_of_the_preferred_split_is_taken(charted):
    chosen = choose_snapshot(charted, charted.runs.get(1))
    assert (chosen.split, chosen.step) == ("renderings", 240)
    assert choose_snapshot(charted, charted.runs.get(1), step=80, split="combinations").step == 80


def test_what_is_there_is_named(charted):
    with pytest.raises(ChartError, match="no snapshot at step 7; choose one of 0, 80, 160, 240, or last"):
        choose_snapshot(charted, charted.runs.get(1), step=7)
    with pytest.raises(ChartError, match="it has: Scenes, unseen combinations; Scenes, unseen renderings"):
        choose_snapshot(charted, charted.runs.get(1), split="train")


def test_a_run_without_snapshots(workspace):
    run = workspace.runs.get(workspace.runs.create(config.Run()))
    with pytest.raises(ChartError, match="no snapshot yet: wait for its first evaluation"):
        choose_snapshot(workspace, run)


@pytest.mark.parametrize(("status", "words"), [("running", "its vectors are being read"), ("stopped", "resume it")])
def test_a_run_of_vectors_that_are_not_opened_yet(tmp_path, status: str, words: str):
    workspace = Workspace(tmp_path)
    data = config.Vectors(image_vectors=str(tmp_path / "a.npy"), called="a")
    run = workspace.runs.create(config.run_elsewhere("a", data, config.ImagesElsewhere()))
    workspace.runs.change(run, status=status)
    with pytest.raises(ChartError, match=f"no snapshot yet: {words}"):
        choose_snapshot(workspace, workspace.runs.get(run))
