"""Every headless command with two real runs at two different steps: its output against values computed here."""

import csv
import html
import json
import re
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
    "bundle": "packs every figure: tests/trainer/render_mpl/test_bundle.py",
    "compare": "test_oracle.py has each of its numbers",
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
    "evaluate": "test_oracle.py has each of its numbers",
    "experiment": "trains until decided: tests/trainer/experiments/test_commands.py",
    "generative": "trains two models: tests/trainer/evaluation/test_generative.py",
    "remote": "is called by another computer: tests/trainer/places",
    "places": "needs another computer: tests/trainer/places",
    "watch": "needs a training of another program: tests/trainer/companion",
    "queue": "trains runs: tests/trainer/scheduling/test_queue.py",
    "replay": "makes updates again: tests/trainer/training/test_replay.py",
    "report": "is one page with everything: tests/trainer/render_mpl/test_commands.py",
    "resume": "trains on: tests/trainer/training/test_branch.py",
    "selections": "tests/trainer/store/test_selections.py",
    "stop": "needs a trainer: tests/trainer/store/test_commands.py",
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
    walked = {"analyze", "classify", "data", "doctor", "embed", "export", "runs", "saliency"}
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


@pytest.mark.parametrize("kind", ["attribute-probes", "hopfield-pair", "geometry"])
def test_the_other_analyses_tell_both_runs(ask: Answer, kind: str):
    told = json.dumps(ask("analyze", kind, "1", "2"), ensure_ascii=False)
    assert "CLIP · s0" in told
    assert "CLOOB · s0" in told


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


def test_the_map_is_the_svd(ask: Answer, embedded, tmp_path: Path):
    image, text, _ = embedded[2]
    ask("export", "map", "--runs", "2", "--out", str(tmp_path / "p.csv"))
    with (tmp_path / "p.csv").open(encoding="utf-8") as file:
        points = np.array([(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)])
    both = np.concatenate([image, text])
    _, values, _ = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
    spread = np.sort(np.linalg.norm(points - points.mean(axis=0), axis=0))[::-1]
    np.testing.assert_allclose(spread / spread[0], values[:2] / values[0], rtol=1e-3)


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


def test_data_and_doctor(ask: Answer, two_runs):
    shown = ask("data", "show", "--data", str(two_runs.table))
    assert (shown["found"], shown["used"], shown["classes"]) == (56, 56, 4)
    assert "ok" in {line["state"] for line in ask("doctor")}


def _embed(ask: Answer, out: Path, run: int, *words: str) -> np.ndarray:
    ask("embed", str(run), *words, "--out", str(out))
    return np.load(out / "embeddings.npy").astype(np.float64)
