"""The demo from nothing to its report, with real training of a few steps."""

import json

import pytest

from tests.nightly import nightly_except
from trainer.__main__ import main
from trainer.config import presets
from trainer.store import Workspace

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("count", nightly_except([1, 4], 1))
def test_the_demo_trains_all_and_reports(tmp_path, capsys, monkeypatch, umap_as_pca, count: int):
    all_four = presets.demo_runs()
    monkeypatch.setattr(presets, "demo_runs", lambda: dict([*all_four.items()][:count]))
    status = main(["demo", "--quick", "--json", "--seed", "3", "--epochs", "1", "--workspace", str(tmp_path / "w")])
    out = capsys.readouterr().out
    assert status == 0
    values = json.loads(out)
    assert [run["objective"] for run in values["runs"]] == ["clip", "cloob", "infoloob", "cloob"][:count]
    assert [run["status"] for run in values["runs"]] == ["finished"] * count
    assert {run["config"]["seed"] for run in values["runs"]} == {3}
    rows = {(row["split"], row["metric"]): row["values"] for row in values["comparison"]["rows"]}
    for split in ("renderings", "combinations"):
        assert all(0 <= value <= 1 for value in rows[split, "image_to_text_R@1"])
    workspace = Workspace(tmp_path / "w")
    numbers = range(1, count + 1)
    assert [row.status for row in workspace.runs.all()] == ["finished"] * count
    report = tmp_path / "w" / "reports" / "-".join(("demo", *map(str, numbers)))
    assert values["report"] == str(report / "index.html")
    for name in ("curves.svg", "similarity.png", "map-umap-modality.svg", "map-pca-label.png", "metrics.json"):
        assert (report / name).stat().st_size > 0


def test_the_demo_has_clip_cloob_infoloob_and_half_cloob():
    objectives = [run.objective for run in presets.demo_runs().values()]
    assert [one.kind for one in objectives] == ["clip", "cloob", "infoloob", "cloob"]
    assert [getattr(one, "retrieval_share", None) for one in objectives] == [None, 1.0, None, 0.5]
