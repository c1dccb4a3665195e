"""The dose-response of the retrieval share: the runs it includes, and its numbers against naive ones."""

import csv
import dataclasses
import json
import math

import numpy as np
import pytest

from trainer import config
from trainer.__main__ import main
from trainer.charts import ChartError, registry
from trainer.charts.settings import NoSettings
from trainer.charts.spec import Request, Target
from trainer.store import Items, RunLog, Workspace, snapshot_name, write_snapshot

pytestmark = pytest.mark.slow

N, D = 12, 5
BASE = config.Run(optimizer=config.Optimizer(batch_size=4))
LOUDER = dataclasses.replace(BASE, optimizer=config.Optimizer(batch_size=4, learning_rate=9e-4))
RUNS = {
    "published 0": dataclasses.replace(BASE, seed=0, objective=config.Cloob()),
    "published 1": dataclasses.replace(BASE, seed=1, objective=config.Cloob()),
    "half": dataclasses.replace(BASE, objective=config.Cloob(retrieval_share=0.5)),
    "none": dataclasses.replace(BASE, objective=config.InfoLoobPair()),
    "clip": dataclasses.replace(BASE, objective=config.Clip()),
    "other beta": dataclasses.replace(BASE, objective=config.Cloob(scale_hopfield=20.0)),
    "other tau": dataclasses.replace(BASE, objective=config.InfoLoobPair(inv_tau=7.0)),
    "other rate": dataclasses.replace(LOUDER, objective=config.Cloob(retrieval_share=0.5)),
    "pictures": dataclasses.replace(BASE, objective=config.SimClr()),
}


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    image, noise = np.random.default_rng(seed).standard_normal((2, N, D))
    return tuple((m / np.linalg.norm(m, axis=1)[:, None]).astype(np.float32) for m in (image, image + 0.8 * noise))


@pytest.fixture(scope="module")
def shares(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("shares"))
    blank = [""] * N
    items = Items(np.arange(N), [f"{i}.png" for i in range(N)], [f"caption {i}" for i in range(N)], blank, blank, {})
    for place, (name, run) in enumerate(RUNS.items()):
        with RunLog.claim(workspace, workspace.runs.create(dataclasses.replace(run, name=name))) as log:
            image, text = rows(place)
            folder = log.folder / "snapshots" / snapshot_name(dataset="toys", split="val", step=8)
            write_snapshot(folder, image=image, text=text, items=items, step=8, dataset="toys", split="val", model=name)
            log.snapshot(8, "toys", "val", folder, N, D)
            log.status("finished")
    workspace.runs.create(dataclasses.replace(RUNS["half"], name="waiting", seed=7))
    return workspace


def asked(workspace: Workspace, run: str):
    chart = registry.load("retrieval-share")
    return chart.result(workspace, Request((Target(run),)), NoSettings(), lambda share, note: None)


def test_only_runs_alike_in_all_but_share_and_seed_are_compared(shares: Workspace):
    for first in ("published 0", "none", "clip"):
        data = asked(shares, first)
        assert {shares.runs.get(run.run).name: run.share for run in data.runs} == {
            "published 0": 1.0, "published 1": 1.0, "half": 0.5, "none": 0.0, "clip": None,
        }  # fmt: skip
        assert data.absent == ("CLOOB · waiting",)
    assert [shares.runs.get(run.run).name for run in asked(shares, "other beta").runs] == ["none", "clip", "other beta"]
    with pytest.raises(ChartError, match="Choose a run of CLOOB"):
        asked(shares, "pictures")


def test_numbers_equal_naive_ones(shares: Workspace):
    data = asked(shares, "half")
    run = next(one for one in data.runs if one.name == "CLOOB · half")
    image, text = (np.float64(part) for part in rows(2))
    right = sum(int(all(x @ text[i] > x @ text[j] for j in range(N) if j != i)) for i, x in enumerate(image))
    expected = [100 * right / N]
    for part in (image, text):
        variance = np.linalg.svd(part - part.mean(0), compute_uv=False) ** 2
        share = variance / variance.sum()
        expected.append(math.exp(-sum(s * math.log(s) for s in share)))
    own = []
    for i in range(N):
        batch = range(4 * (i // 4), 4 * (i // 4) + 4)
        own.append(math.exp(8 * text[i] @ image[i]) / sum(math.exp(8 * text[i] @ image[j]) for j in batch))
    assert run.values == pytest.approx((*expected, 100 * np.mean(own)), rel=1e-5)


def test_the_legend_has_no_line_for_each_run(shares: Workspace):
    panel = registry.load("retrieval-share").panel(asked(shares, "half"), NoSettings())
    for measure in range(4):
        plot = panel.mark(f"share-{measure}")
        assert [curve.name for curve in plot.curves] == ["CLOOB", "CLIP"]
        assert [dot.name for dot in plot.dots] == [""] * 5


def test_the_command_prints_means_and_writes_runs(shares: Workspace, tmp_path, capsys):
    where = ["--runs", "half", "--workspace", str(shares.folder)]
    assert main(["analyze", "retrieval-share", *where, "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["runs"]
    assert [row["column"] for row in table] == ["s = 0", "s = 0.5", "s = 1", "CLIP"]
    values = [run.values[1] for run in asked(shares, "half").runs if run.share == 1.0]
    assert table[2]["Effective rank, images"] == pytest.approx(np.mean(values))
    assert table[2]["Effective rank, images, ±"] == pytest.approx(np.std(values, ddof=1))
    assert main(["export", "retrieval-share", *where, "--out", str(tmp_path / "s.svg"), str(tmp_path / "s.csv")]) == 0
    assert "Retrieval share s" in (tmp_path / "s.svg").read_text(encoding="utf-8")
    assert main(["export", "retrieval-share", *where, "--records", "--out", str(tmp_path / "r.csv")]) == 0
    assert len(list(csv.DictReader((tmp_path / "r.csv").open(encoding="utf-8")))) == 5
