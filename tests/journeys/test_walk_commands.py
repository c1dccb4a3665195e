"""Every headless command with two real runs at two different steps: its output against values computed here."""

from __future__ import annotations

import csv
import html
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import trainer.cli
from tests.nightly import few_plain
from trainer.__main__ import _modules_of, main
from trainer.charts import registry
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Workspace
from trainer.store.snapshot_files import read_snapshot

Answer = Callable[..., Any]

pytestmark = pytest.mark.timeout(600)

ELSEWHERE = {
    "ablation": "trains four runs of Scenes",
    "bench": "measures a device: tests/trainer/training/test_gpu_bench.py",
    "data-efficiency": "trains on shares: tests/trainer/experiments/test_data_efficiency.py",
    "decode": "needs decoders of runs: tests/trainer/inference/test_decode.py",
    "serve": "is spoken to by the window",
    "preview": "is spoken to by the window: tests/trainer/render_mpl/test_figure_choices.py",
    "demo": "trains on Scenes: tests/trainer/render_mpl/test_demo.py",
    "independent": "embeds Scenes: tests/trainer/evaluation/test_independent.py",
    "install": "brings torch: tests/trainer/distribution",
    "mcp": "is spoken to by agents: tests/trainer/agents/test_mcp.py",
    "open": "opens published models: tests/trainer/pretrained",
    "fit": "trained both runs",
    "energy": "needs a card: tests/trainer/scheduling/test_gpu_usage.py",
    "experiment": "trains until decided: tests/trainer/experiments/test_commands.py",
    "generative": "trains two models: tests/trainer/evaluation/test_generative.py",
    "remote": "is called by another computer: tests/trainer/places",
    "places": "needs another computer: tests/trainer/places",
    "watch": "needs a training of another program: tests/trainer/companion",
    "replay": "makes updates again: tests/trainer/training/test_replay.py",
}
OPTIONS = {
    "axes": ("--x", "a red circle", "--y", "a blue square"),
    "words": ("--pair", "3"),
    "search": ("--query-text", "a red circle"),
    "probe-strip": ("--text", "a red circle", "--steps", "2"),
}
FIGURES = {
    "map": (), "timeline": (),
} | {name: OPTIONS.get(name, ()) for name in registry.names() if registry.load(name).needs != "none"}  # fmt: skip
"""Kinds of `trainer export` that draw runs, and what each is asked."""
ALWAYS = (
    "curves", "changes", "confusion", "evaluation-scores", "map", "matrix", "probe-strip", "search", "similarity",
    "timeline", "words", "groups",
)  # fmt: skip
"""Of the plain suite; test_charts_on_screen.py exports every chart and compares it with the screen."""
GROUPS = ("--group", "clip*", "--group", "cloob*")
OF_NO_RUN = {
    "toy-batch": (),
    "loss-saturation": (),
    "loss-margins": (),
    "loss-views": (),
    "augmentations": (),
    "diffusion": (),
    "pixel-cnn": (),
    "skip-gram": (),
    "sampling-variance": (),
    "softmax-cost": (),
    "hopfield-temperature": (),
    "data-efficiency": GROUPS,
    "groups": GROUPS,
}
OF_AN_EXPERIMENT = {"experiment-verdict", "experiment-curves"}
"""Charts that need an experiment: tests/trainer/experiments/test_commands.py."""
ANALYSES = (
    "data-efficiency", "pair", "pairs",
)  # fmt: skip


def _some_nightly(kinds: Iterable[str]) -> list[Any]:
    return [pytest.param(kind, marks=() if kind in ALWAYS else pytest.mark.nightly) for kind in kinds]


@pytest.fixture
def ask(two_runs, capsys) -> Answer:
    """Return a function that runs a command with `--json` and parses its output; as text with `whole=False`."""

    def call(*words: str, status: int = 0, whole: bool = True) -> Any:
        assert main([*words, "--json", "--workspace", str(two_runs.workspace)]) == status, words
        out = capsys.readouterr().out
        return json.loads(out) if whole else out

    return call


@pytest.fixture(scope="module")
def embedded(two_runs) -> dict[int, tuple[np.ndarray, np.ndarray, Any]]:
    """Return images and texts of each run's last snapshot in float64, and their items."""
    workspace = Workspace(two_runs.workspace)
    snapshots = {run: read_snapshot(choose_snapshot(workspace, workspace.runs.get(run)).folder) for run in (1, 2)}
    return {
        run: (np.array(one.image, dtype=np.float64), np.array(one.text, dtype=np.float64), one.items)
        for run, one in snapshots.items()
    }


def test_no_command_and_no_kind_is_left_out():
    commands = set(_modules_of(trainer.cli))
    walked = {"analyze", "bundle", "classify", "compare", "data", "doctor", "embed", "evaluate", "export", "project"}
    walked |= {"queue", "report", "resume", "runs", "saliency", "search", "selections", "stop"}
    assert commands == walked | set(ELSEWHERE)
    charts = {*registry.names()}
    assert {*_modules_of(trainer.cli.export)} | charts == {*FIGURES, *OF_NO_RUN, *OF_AN_EXPERIMENT}
    assert {*_modules_of(trainer.cli.analyze)} == {*ANALYSES} - charts


def test_the_runs_stand_at_two_steps(ask: Answer, two_runs):
    assert two_runs.steps == (24, 36)
    assert [(run["id"], run["step"], run["status"]) for run in ask("runs")] == [
        (1, 24, "finished"),
        (2, 36, "finished"),
    ]
    assert ask("runs", "show", "2")["objective"] == "cloob"


def test_compare_and_analyze_give_what_the_embeddings_give(ask: Answer, embedded):
    compared = {row["metric"]: row["values"] for row in ask("compare", "1", "2")["rows"]}
    similar, geometric = (ask("analyze", kind, "1", "2")["runs"] for kind in ("similarity", "geometry"))
    gaps, hubs, alike = (ask("analyze", kind, "1", "2") for kind in ("gap", "hubness", "pairs"))
    for place, run in enumerate((1, 2)):
        image, text, _ = embedded[run]
        cosines = image @ text.T
        first = float(np.mean(cosines.argmax(axis=1) == np.arange(len(cosines))))
        gap = float(np.linalg.norm(image.mean(axis=0) - text.mean(axis=0)))
        assert compared["image_to_text_R@1"][place] == pytest.approx(first, abs=1e-6)
        assert similar[place]["mean_matched"] == pytest.approx(float(np.diag(cosines).mean()), abs=1e-6)
        assert geometric[place]["modality_gap"] == pytest.approx(gap, abs=1e-6)
        assert gaps["runs"][place]["gap at 0"] == pytest.approx(gap, abs=1e-6)
        assert alike["runs"][place]["mean_cosine"] == pytest.approx(float(np.diag(cosines).mean()), abs=1e-6)
        found = float(np.mean(cosines.argmax(axis=0) == np.arange(len(cosines))))
        assert hubs["runs"][place]["recall_at_1"] == pytest.approx(found, abs=1e-6)


def test_a_pair_has_the_ranks_of_the_embeddings(ask: Answer, embedded):
    shown = ask("analyze", "pair", "1", "2", "--row", "3")["runs"]
    for run, one in zip((1, 2), shown, strict=True):
        cosines = embedded[run][0] @ embedded[run][1].T
        ranks = [1 + int((line > line[3]).sum()) for line in (cosines[3], cosines[:, 3])]
        assert (one["run"], one["step"], one["caption_rank"], one["image_rank"]) == (run, {1: 24, 2: 36}[run], *ranks)


def test_changes_and_representation_similarity_compare_the_two_steps(ask: Answer, embedded):
    changes = ask("analyze", "changes", "1", "2")["runs"][0]
    assert (changes["step_a"], changes["step_b"], changes["n"]) == (24, 36, len(embedded[1][0]))
    ranks = [_ranks(image @ text.T) for image, text, _ in (embedded[1], embedded[2])]
    assert changes["image_rank_a_mean"] == pytest.approx(float(ranks[0].mean()))
    assert changes["image_rank_b_median"] == pytest.approx(float(np.median(ranks[1])))
    alike = ask("analyze", "representation-similarity", "1", "2", "--steps", "1")["runs"]
    spaces = [(space["run"], space["step"], space["modality"]) for space in alike]
    first, second = (spaces.index((run, step, "image")) for run, step in ((1, 24), (2, 36)))
    assert alike[first]["cka"][second] == pytest.approx(_cka(embedded[1][0], embedded[2][0]), abs=1e-5)


@pytest.mark.parametrize("kind", ["attribute-probes", "hopfield-pair", "geometry"])
def test_the_other_analyses_tell_both_runs(ask: Answer, kind: str):
    told = json.dumps(ask("analyze", kind, "1", "2"), ensure_ascii=False)
    assert "CLIP · pictures · s0" in told
    assert "CLOOB · pictures · s0" in told


def test_classify_gives_what_embed_gives(ask: Answer, two_runs, tmp_path: Path):
    labels, picture = ("circle", "square", "bar"), str(two_runs.pictures[0])
    asked = ("--labels", *labels, "--templates", "a photo of a {}")
    answered = ask("classify", "1", "2", picture, *asked)
    assert ask("classify", picture, "--runs", "1", "2", *asked)["runs"][0]["run"] == 1
    for run in (1, 2):
        texts = [f"a photo of a {label}" for label in labels]
        image = _embed(ask, tmp_path / f"i{run}", run, "--images", picture)
        cosines = (_embed(ask, tmp_path / f"t{run}", run, "--texts", *texts) @ image.T)[:, 0]
        own = next(one for one in answered["runs"] if one["run"] == run)
        scaled = np.exp(own["inv_tau"] * cosines)
        assert own["cosines"][0] == pytest.approx(cosines.tolist(), abs=1e-5)
        assert own["probabilities"][0] == pytest.approx((scaled / scaled.sum()).tolist(), abs=1e-4)


def test_search_finds_the_nearest_pictures(ask: Answer, embedded, tmp_path: Path):
    hits = ask("search", "--text", "a red circle", "--runs", "1", "2", "--k", "5")["hits"]
    for run in (1, 2):
        query = _embed(ask, tmp_path / str(run), run, "--texts", "a red circle")[0]
        cosines = embedded[run][0] @ query
        own = [hit for hit in hits if hit["run"] == run]
        assert [hit["cosine"] for hit in own] == pytest.approx(np.sort(cosines)[::-1][:5].tolist(), abs=1e-5)
        assert all(hit["cosine"] == pytest.approx(cosines[hit["row"]], abs=1e-5) for hit in own)


@few_plain(1, "method", ["occlusion", "gradient"])
def test_saliency_of_both_runs(ask: Answer, two_runs, tmp_path: Path, method: str):
    caption, picture = "a red circle on the left", str(two_runs.pictures[0])
    words = ("saliency", "1", "2", "--image", picture, "--caption", caption, "--grid", "4", "--method", method)
    for run, found in zip((1, 2), ask(*words)["runs"], strict=True):
        image = _embed(ask, tmp_path / f"i{run}", run, "--images", picture)[0]
        text = _embed(ask, tmp_path / f"t{run}", run, "--texts", caption)[0]
        assert (found["run"], found["step"]) == (run, {1: 24, 2: 36}[run])
        assert found["cosine"] == pytest.approx(float(image @ text), abs=1e-4)
        assert np.ptp(found["cells"]) > 0


def test_embed_gives_what_the_snapshot_holds(ask: Answer, embedded, tmp_path: Path):
    for run in (1, 2):
        image, text, items = embedded[run]
        again = _embed(ask, tmp_path / f"i{run}", run, "--images", *items.path)
        np.testing.assert_allclose(again, image, atol=1e-5)
        np.testing.assert_allclose(_embed(ask, tmp_path / f"t{run}", run, "--texts", *items.caption), text, atol=1e-5)


def test_embed_of_a_set_gives_what_embed_of_its_files_gives(ask: Answer, two_runs, tmp_path: Path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number, source in enumerate(two_runs.pictures[:6]):
        (pictures / f"{number}{source.suffix}").write_bytes(source.read_bytes())
        (pictures / f"{number}.txt").write_text(f"picture {number}")
    told = ask("embed", "2", "--data", str(pictures), "--shard-rows", "4", "--out", str(tmp_path / "set"))
    assert (told["n"], told["shards"], told["step"]) == (6, 2, 36)
    files = sorted(str(file) for file in pictures.iterdir() if file.suffix != ".txt")
    shards = [np.load(tmp_path / "set" / "img_emb" / f"img_emb_{number:05d}.npy") for number in range(2)]
    again = _embed(ask, tmp_path / "files", 2, "--images", *files)
    np.testing.assert_allclose(np.concatenate(shards), again, atol=1e-6)


def test_project_is_the_svd(ask: Answer, embedded, tmp_path: Path):
    image, text, _ = embedded[2]
    assert ask("project", "2", "--out", str(tmp_path / "p.npy"))["images"] == len(image)
    points = np.load(tmp_path / "p.npy").astype(np.float64)
    both = np.concatenate([image, text])
    _, values, _ = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
    spread = np.sort(np.linalg.norm(points - points.mean(axis=0), axis=0))[::-1]
    np.testing.assert_allclose(spread / spread[0], values[:2] / values[0], rtol=1e-3)


def test_evaluate_measures_what_was_held_out(ask: Answer, embedded):
    answered = ask("evaluate", "1", "2", "--task", "retrieval")
    for run, one in zip((1, 2), answered, strict=True):
        image, text, _ = embedded[run]
        first = float(np.mean((image @ text.T).argmax(axis=1) == np.arange(len(image))))
        assert (one["split"], one["n"], one["trained_on"]) == ("heldout", len(image), 0)
        assert one["metrics"]["text_retrieval_recall@1"] == pytest.approx(first, abs=1e-6)


@few_plain(3, "kind", _some_nightly(FIGURES))
def test_every_figure_is_drawn_with_its_numbers(ask: Answer, tmp_path: Path, kind: str):
    more = ("--explain",) if kind == "protocol" else ()
    if kind in ("evaluation-scores", "confusion", "evaluation-curves", "protocol"):
        ask("evaluate", "1", "2", "--task", "zero_shot", *more, whole=False)
    if kind == "caption-choice":
        Image.new("RGB", (32, 32), "red").save(tmp_path / "a.png")
        (tmp_path / "choices.csv").write_text("image,caption,negative\na.png,a red sheet,a blue sheet\n")
        ask("evaluate", "1", "2", "--task", "caption_choice", "--data", str(tmp_path / "choices.csv"), whole=False)
    files = [str(tmp_path / f"f.{suffix}") for suffix in ("svg", "csv")]
    ask("export", kind, "--runs", "1", "2", *FIGURES[kind], "--out", *files)
    svg, numbers = (Path(file).read_text(encoding="utf-8") for file in files)
    rows = list(csv.reader(numbers.splitlines()))
    assert "<svg" in svg
    assert f"trainer export {kind}" in html.unescape(svg)
    assert len(rows) > 1
    # In one the first run is part of every name; one shows runs alike to A, which B here is not; two show fields.
    if kind not in ("changes", "retrieval-share", "field-importance", "field-grid"):
        cells = {re.sub(r"^#\d+ ", "", cell) for row in rows for cell in row}
        assert {"CLIP", "CLOOB"} <= {re.split(",| ·", cell)[0] for cell in cells}


@pytest.mark.parametrize("kind", _some_nightly(OF_NO_RUN))
def test_figures_of_groups_and_of_the_lab(ask: Answer, tmp_path: Path, kind: str):
    files = [str(tmp_path / f"f.{suffix}") for suffix in ("svg", "csv")]
    ask("export", kind, *OF_NO_RUN[kind], "--out", *files)
    assert "<svg" in Path(files[0]).read_text(encoding="utf-8")
    assert len(Path(files[1]).read_text(encoding="utf-8").splitlines()) > 1


def test_selections_are_kept_listed_written_and_forgotten(ask: Answer, embedded, tmp_path: Path):
    ask("selections", "keep", "walked", "--run", "1", "--rows", "0", "3")
    assert "walked" in [one["name"] for one in ask("selections")["selections"]]
    ask("selections", "export", "walked", "--out", str(tmp_path / "s.csv"))
    written = (tmp_path / "s.csv").read_text(encoding="utf-8")
    captions = embedded[1][2].caption
    assert captions[0] in written
    assert captions[3] in written
    assert captions[1] not in written
    ask("selections", "delete", "walked", whole=False)
    assert "walked" not in [one["name"] for one in ask("selections")["selections"]]


@pytest.mark.nightly  # tests of render_mpl have both
def test_report_and_bundle_name_both_runs(ask: Answer, tmp_path: Path, umap_as_pca):
    ask("report", "1", "2", "--out", str(tmp_path / "r.html"), whole=False)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "CLIP · pictures · s0" in page
    assert "CLOOB · pictures · s0" in page
    figures = tmp_path / "figures.json"
    figures.write_text(json.dumps([["export", "similarity", "--runs", "1", "2"]]), encoding="utf-8")
    words = ("bundle", "1", "2", "--figures", str(figures), "--out", str(tmp_path / "b.zip"))
    ask(*words, whole=False)
    with zipfile.ZipFile(tmp_path / "b.zip") as bundle:
        names = bundle.namelist()
    assert sum(name.endswith("config.toml") for name in names) == 2
    assert any("similarity" in name for name in names)


def test_data_and_doctor(ask: Answer, two_runs):
    shown = ask("data", "show", "--data", str(two_runs.table))
    assert (shown["found"], shown["used"], shown["classes"]) == (56, 56, 4)
    assert "ok" in {line["state"] for line in ask("doctor")}


@pytest.mark.nightly  # test_first_day.py stops and resumes
def test_queue_trains_and_stop_and_resume_say_what_is(two_runs, tmp_path: Path, capsys):
    """Train by a real process in a separate workspace."""

    def call(*words: str, status: int = 0) -> str:
        assert main([*words, "--workspace", str(tmp_path)]) == status, words
        return "".join(capsys.readouterr())

    call("queue", "add", "--config", str(_config(two_runs)), "--set", "optimizer.epochs=1", "--seeds", "5")
    call("queue", "run")
    workspace = Workspace(tmp_path)
    while workspace.runs.get(1).status in ("queued", "starting", "running"):  # the test's own time limit ends it
        time.sleep(0.2)
    assert (workspace.runs.get(1).status, workspace.runs.get(1).step) == ("finished", 4)
    workspace.close()
    assert "finished" in call("stop", "1") + call("resume", "1", status=2)
    call("runs", "rename", "1", "another")
    call("runs", "delete", "1")
    assert json.loads(call("runs", "--json")) == []
    call("runs", "restore", "1")
    assert [one["name"] for one in json.loads(call("runs", "--json"))] == ["another"]


def _config(two_runs) -> Path:
    return next(two_runs.workspace.glob("runs/0001-*/config.toml"))


def _embed(ask: Answer, out: Path, run: int, *words: str) -> np.ndarray:
    ask("embed", str(run), *words, "--out", str(out))
    return np.load(out / "embeddings.npy").astype(np.float64)


def _ranks(cosines: np.ndarray) -> np.ndarray:
    own = np.diag(cosines)[:, None]
    return 1 + (cosines > own).sum(axis=1)


def _cka(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return float(np.linalg.norm(x.T @ y) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))
