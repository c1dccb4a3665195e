"""`trainer experiment`: made, stored and judged without training; and once with real runs in the queue."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.trainer.experiments.conftest import end_all
from trainer.__main__ import main
from trainer.charts import experiment_curves, experiment_verdict
from trainer.charts.spec import Request
from trainer.experiments.experiment import from_toml
from trainer.scheduling import experiments
from trainer.store import RunLog, Workspace

TINY = (
    "epochs=1", "batch=16", "model.image_size=32", "model.image_width=8", "model.text_width=32", "model.text_layers=1",
    "model.text_heads=2", "data.train_pairs=64", "data.heldout_pairs=16", "warmup_steps=1",
)  # fmt: skip


@pytest.fixture
def ask(workspace: Workspace, capsys):
    def call(*words: str, status: int = 0):
        assert main(["experiment", *words, "--json", "--workspace", str(workspace.folder)]) == status, words
        out = capsys.readouterr()
        return json.loads(out.out) if status == 0 else out.err

    return call


def value(arm: str, seed: int) -> float:
    return 0.4 + 0.01 * seed + (0.2 + 0.001 * (-1) ** seed if arm == "CLOOB" else 0.0)


def judged(workspace, stored) -> None:
    experiments.start(workspace, stored.name)
    for _ in range(3):
        end_all(workspace, stored, value)
        experiments.advance(workspace)


def test_a_new_one_is_a_file_and_starts_nothing(ask, workspace, tmp_path):
    file = tmp_path / "duel.toml"
    found = ask("new", str(file), "--preset", "clip-scenes", "--preset", "cloob-scenes", "--margin", "0.02")
    assert (found["experiment"], found["state"], found["runs"]) == ("duel", "new", [])
    assert from_toml(file.read_text()).outcome.metric == "image_to_text_R@1"
    assert "exists already" in ask("new", str(file), "--preset", "clip-scenes", status=2)
    assert ask("new", str(file))["state"] == "new", "what is there already stays"
    assert workspace.runs.all() == []
    assert [row["name"] for row in ask()] == ["duel"]
    copy = tmp_path / "copy.toml"
    main(["experiment", "export", "duel", "--out", str(copy), "--workspace", str(workspace.folder)])
    assert copy.read_text() == file.read_text()
    assert "no experiment" in ask("show", "other", status=2)


def test_a_run_is_repeated_over_the_values_of_a_field(ask, workspace, stored):
    run = workspace.runs.create(stored.control.run)
    found = ask("repeat", str(run), "--set", "optimizer.batch_size=64,256", "--name", "batches")
    assert {one["arm"] for one in found["comparisons"]} == {"optimizer.batch_size 64", "optimizer.batch_size 256"}
    assert "one field" in ask("repeat", str(run), status=2)


def test_of_own_pairs_as_many_seeds_are_proposed_as_in_the_import_dialog(ask, workspace, tmp_path, monkeypatch):
    for number in range(40):
        (tmp_path / f"{number}.png").touch()
        (tmp_path / f"{number}.txt").write_text(f"picture {number}")
    words = ("both", "--preset", "clip-folder", "--set", f"data.path={tmp_path}", "--set", "batch=8", "--queue")
    asked = []

    def slow(run, pairs, paces):
        asked.append((run.optimizer.batch_size, pairs, paces))
        return 1

    for seeds in (3, 1):
        before = {row.name for row in workspace.experiments.all()}
        ask(*words)
        (row,) = (row for row in workspace.experiments.all() if row.name not in before)
        experiment = from_toml(row.definition)
        assert (experiment.least_seeds, experiment.most_seeds) == (seeds, seeds)
        monkeypatch.setattr("trainer.scheduling.paces.proposed_seeds", slow)
    ((batch, pairs, paces),) = asked
    assert (batch, paces) == (8, ())
    assert 30 <= pairs < 40, "those to train on"


class Page(HTMLParser):
    """The text of a page, and where it would load from."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.loads: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name == "src"]


def test_the_verdict_is_one_page_with_every_run(ask, workspace, stored, tmp_path):
    judged(workspace, stored)
    files = [tmp_path / f"verdict.{kind}" for kind in ("html", "md", "tex", "csv", "svg", "toml")]
    found = ask("verdict", "duel", "--out", *map(str, files))
    assert found["decided"]
    page = Page()
    page.feed(files[0].read_text(encoding="utf-8"))
    text = " ".join(page.texts)
    assert found["words"] in text
    assert all(load.startswith("data:image/svg+xml;base64,") for load in page.loads)
    assert len(page.loads) == 1, "without curves there is one figure"
    for run in found["runs"]:
        assert run["label"] in text
        assert run["label"] in files[1].read_text(encoding="utf-8").replace("\\", "")
    assert len(list(csv.DictReader(files[3].open(encoding="utf-8")))) == len(found["runs"]) == 6
    tables = files[2].read_text(encoding="utf-8").split(r"\toprule")[1:]
    assert tables
    assert all(one.splitlines()[2] == r"\midrule" != one.splitlines()[3] for one in tables)
    assert from_toml(files[5].read_text(encoding="utf-8")) == stored
    assert "<svg" in files[4].read_text(encoding="utf-8")
    assert "choose a name that ends in" in ask("verdict", "duel", "--out", "x.doc", status=2)


def test_the_chart_has_an_interval_for_each_arm_and_a_point_for_each_seed(workspace, stored):
    judged(workspace, stored)
    settings = experiment_verdict.ExperimentSettings()
    data = experiment_verdict.CHART.result(workspace, Request(), settings, lambda *_: None)
    panel = experiment_verdict.CHART.panel(data, settings)
    plot = panel.mark("difference")
    (dot,), (points,) = plot.dots, plot.points
    interval = data.primary[0].interval
    points_of = tuple(100 * value for value in (interval.low, interval.mean, interval.high))
    assert (dot.low, dot.y, dot.high) == pytest.approx(points_of)
    assert points.xy[:, 1].tolist() == pytest.approx([100 * gap for _, gap in data.primary[0].differences])
    assert len(panel.mark("runs").lines) == 6
    assert [len(one.xy) for one in panel.mark("values").points] == [3, 3]


def test_a_band_is_the_interval_of_the_mean_and_losses_have_plots_of_their_own(workspace, stored):
    from scipy import stats

    from trainer.analysis.repeated_intervals import nominal_level

    judged(workspace, stored)
    for row in workspace.runs.of_experiment("duel"):
        with RunLog.claim(workspace, row.id) as log:
            for step in (10, 20):
                log.scalars(step, {"val/image_to_text_R@1": row.id / step, "train/loss": 1.0 * row.id})
            log.status("finished")
    settings = experiment_curves.ArmCurveSettings("duel")
    data = experiment_curves.compute(workspace, Request(), settings, lambda *_: None)
    first = data.curves[0]
    values = [row.id / 20 for row in workspace.runs.of_experiment("duel") if row.arm == "CLIP"]
    level = 1 - nominal_level(0.05, 3, 5)
    low, high = stats.t.interval(level, 2, loc=first.mean[-1], scale=stats.sem(values))
    assert (first.low[-1], first.high[-1]) == pytest.approx((max(low, 0), min(high, 1)))
    panel = experiment_curves.CHART.panel(data, settings)
    titles = [plot.title for plot in panel.marks]
    assert [title for title in titles if "loss" in title] == ["Training loss, CLIP", "Training loss, CLOOB"]
    thin = [curve for curve in panel.marks[0].curves if not curve.name]
    assert sorted(curve.hint for curve in thin) == sorted(
        row.short_name for row in workspace.runs.of_experiment("duel")
    )
    assert len({curve.tone for curve in thin}) == 6, "a hue an arm, a tone a seed"
    home = experiment_verdict.ExperimentSettings("duel")
    drawn = experiment_verdict.CHART.panel(
        experiment_verdict.CHART.result(workspace, Request(), home, lambda *_: None), home
    )
    assert [mark.key for mark in drawn.rows[0]] == ["learning", "difference"], "the curves stand beside the verdict"
    assert drawn.mark("learning").curves[-1].y.tolist() == panel.marks[0].curves[-1].y.tolist()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_real_runs_are_queued_trained_and_judged(ask, workspace, tmp_path, trained_here):
    file = tmp_path / "tiny.toml"
    changes = [word for change in TINY for word in ("--set", _dotted(change))]
    presets = ("--preset", "clip-scenes", "--preset", "cloob-scenes")
    ask("new", str(file), *presets, *changes, "--least", "2", "--most", "2")
    page = tmp_path / "verdict.html"
    found = ask("run", "tiny", "--out", str(page))
    assert (found["state"], found["seeds"], found["samples"]) == ("ended", [0, 1], 16)
    assert [run["status"] for run in found["runs"]] == ["finished"] * 4
    assert not found["decided"], "two seeds never decide"
    assert len(re.findall("data:image/svg", page.read_text(encoding="utf-8"))) == 2


def _dotted(change: str) -> str:
    sections = {"epochs": "optimizer.epochs", "batch": "batch", "warmup_steps": "optimizer.warmup_steps"}
    name, _, value = change.partition("=")
    return f"{sections.get(name, name)}={value}"


def test_files_of_others_start_nothing(ask, workspace, tmp_path):
    file = Path(tmp_path / "x.toml")
    file.write_text('name = "x"\nstate = "going"\n[outcome]\nmetric = "a"\nsplit = "b"\n', encoding="utf-8")
    assert "unknown field" in ask("new", str(file), status=2)
    assert workspace.experiments.all() == []
