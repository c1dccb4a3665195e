"""The demo from nothing to its report, with real training of a few steps."""

from __future__ import annotations

import json

import pytest

from trainer.__main__ import main
from trainer.store import Workspace

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_the_demo_trains_all_four_and_reports(tmp_path, capsys, umap_as_pca):
    status = main(["demo", "--quick", "--json", "--seed", "3", "--epochs", "1", "--workspace", str(tmp_path / "w")])
    out = capsys.readouterr().out
    assert status == 0
    values = json.loads(out)
    assert [run["objective"] for run in values["runs"]] == ["clip", "cloob", "infoloob", "cloob"]
    assert [run["status"] for run in values["runs"]] == ["finished"] * 4
    assert {run["config"]["seed"] for run in values["runs"]} == {3}
    rows = {(row["split"], row["metric"]): row["values"] for row in values["comparison"]["rows"]}
    for split in ("renderings", "combinations"):
        assert all(0 <= value <= 1 for value in rows[split, "image_to_text_R@1"])
    workspace = Workspace(tmp_path / "w")
    objectives = [workspace.runs.config_of(number).objective for number in (1, 2, 3, 4)]
    assert [getattr(one, "retrieval_share", None) for one in objectives] == [None, 1.0, None, 0.5]
    assert [row.status for row in workspace.runs.all()] == ["finished"] * 4
    report = tmp_path / "w" / "reports" / "demo-1-2-3-4"
    assert values["report"] == str(report / "index.html")
    for name in ("curves.svg", "similarity.png", "map-umap-modality.svg", "map-pca-label.png", "metrics.json"):
        assert (report / name).stat().st_size > 0
