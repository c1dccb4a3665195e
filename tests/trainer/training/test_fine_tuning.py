"""Fine-tuning runs: defaults by what the weights are, what is forgotten, LoRA, mixes and soups."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.nightly import few_plain
from trainer import config
from trainer.__main__ import main
from trainer.analysis.retrieval import right_answers
from trainer.charts.forgetting import CHART
from trainer.charts.matching import matching_of
from trainer.charts.measures.forgetting import Course, Forgetting, StepShare, course_rows
from trainer.charts.spec import PerRun, Request, Target
from trainer.checkpoints import checkpoint
from trainer.experiments.mixes import mix_run
from trainer.inference.export_model import export_model
from trainer.inference.open_model import open_run
from trainer.models.lora import attach
from trainer.pretrained.peft_layout import read_adapter
from trainer.store import Workspace, read_snapshot
from trainer.training.control import ControlFlags
from trainer.training.fit import fit
from trainer.training.metric_logger import MetricLogger

pytestmark = pytest.mark.slow

VIT = {"model.image_tower": "vit", "model.image_width": 32, "optimizer.epochs": 2, "watching.snapshots": 2}
COLORS = {"red": (220, 40, 40), "blue": (40, 60, 220), "green": (40, 180, 60), "yellow": (230, 210, 40)}
SHORT = ("--set", "optimizer.epochs=2", "--set", "optimizer.batch_size=16", "--set", "watching.snapshots=2")


@pytest.fixture(scope="module")
def stripes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of 48 pairs that Scenes do not know."""
    folder = tmp_path_factory.mktemp("data") / "stripes"
    folder.mkdir()
    names = [(a, b, wide) for a in COLORS for b in COLORS if a != b for wide in (4, 6, 8, 12)]
    for number, (a, b, wide) in enumerate(names):
        lines = (np.arange(48) // wide) % 2
        picture = np.array([COLORS[a], COLORS[b]], np.uint8)[lines][None].repeat(48, 0)
        Image.fromarray(picture).save(folder / f"{number:02d}.png")
        (folder / f"{number:02d}.txt").write_text(f"stripes of {a} and {b}, {wide} wide")
    return folder


@pytest.fixture(scope="module")
def base(workspace, tiny) -> int:
    run = tiny(**VIT)
    fit(workspace, run)
    return run


@pytest.fixture(scope="module")
def tune(workspace, base, stripes, request):
    """Fine-tune the base by the command, with further arguments; return the run's id."""

    def make(name: str, *arguments: str) -> int:
        command = ["fit", "--from", str(base), "--data", str(stripes), "--name", name, *SHORT, *arguments]
        assert main([*command, "--workspace", str(workspace.folder)]) == 0
        return workspace.runs.get(name).id

    return make


@pytest.fixture(scope="module")
def tuned(tune) -> int:
    return tune("tuned", "--set", "optimizer.learning_rate=3e-4")


@pytest.fixture(scope="module")
def lora(tune) -> int:
    return tune("lora", "--set", "tuning.lora_rank=2", "--set", "optimizer.learning_rate=1e-2")


def weights(workspace: Workspace, run: int, step: int | None = None) -> dict[str, torch.Tensor]:
    folder = workspace.runs.get(run).folder / "checkpoints"
    found = checkpoint.newest(folder)[0] if step is None else checkpoint.load(folder / f"step_{step:06d}")
    assert found is not None
    return found.averaged().weights


def embeddings(workspace: Workspace, run: int, split: str, step: int) -> tuple[np.ndarray, np.ndarray]:
    row = next(s for s in workspace.results.snapshots(run) if (s.split, s.step) == (split, step))
    snapshot = read_snapshot(row.folder)
    return np.array(snapshot.image), np.array(snapshot.text)


def test_the_defaults_follow_what_the_weights_are_and_say_why(workspace, tune, base, capsys):
    run = workspace.runs.config_of(tune("plain", "--set", "optimizer.epochs=1"))
    printed = capsys.readouterr().out
    source = workspace.runs.config_of(base)
    assert (run.model, run.objective.kind) == (source.model, source.objective.kind)
    assert (run.optimizer.learning_rate, run.optimizer.layer_decay, run.optimizer.batch_size) == (1e-5, 0.75, 16)
    assert run.tuning.start == f"{workspace.runs.get(base).folder.name}@{workspace.runs.get(base).step}"
    assert run.tuning.reference == "start"
    assert "the weights are pretrained; from nothing it is 0.001" in printed
    assert "held-out pairs of tiny" in printed
    assert "asked for by name" in next(line for line in printed.splitlines() if line.startswith("Epochs"))


def test_step_0_is_the_run_that_is_started_from(workspace, base, tuned):
    row = workspace.runs.get(base)
    start = weights(workspace, base)
    assert all(torch.equal(value, start[name]) for name, value in weights(workspace, tuned, 0).items())
    at_its_end = embeddings(workspace, base, "renderings", row.step)
    for mine, theirs in zip(embeddings(workspace, tuned, "renderings", 0), at_its_end, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    logged = workspace.results.series(tuned, "reference/image_to_text_R@1")[1]
    assert logged[0] == workspace.results.series(base, "val/image_to_text_R@1")[1][-1]


def test_layers_and_towers_that_are_frozen_stay(workspace, tune, base):
    run = tune("frozen", "--set", "tuning.freeze_text=1", "--set", "tuning.image_rate=0", "--set", "tuning.reference=")
    before, after = weights(workspace, base), weights(workspace, run)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert not any(name.startswith("towers.visual.") for name in changed)
    assert not any("resblocks.0." in name or "token_embedding" in name for name in changed)
    assert "towers.text.text_projection" in changed


def test_batch_norms_keep_the_statistics_of_the_start_unless_asked_otherwise(workspace, tiny, stripes):
    start = tiny()
    fit(workspace, start)
    before = weights(workspace, start)
    statistics = [name for name in before if name.endswith(("running_mean", "running_var"))]
    assert statistics
    for name, changes in (("held", ()), ("followed", ("--set", "tuning.update_norms=true"))):
        command = ["fit", "--from", str(start), "--data", str(stripes), "--name", name, *SHORT, *changes]
        assert main([*command, "--workspace", str(workspace.folder)]) == 0
        after = weights(workspace, workspace.runs.get(name).id)
        assert {torch.equal(before[key], after[key]) for key in statistics} == {name == "held"}
        norm = statistics[0].replace("running_mean", "weight").replace("running_var", "weight")
        assert not torch.equal(before[norm], after[norm]), "what is not a statistic learns"


def test_a_probe_trains_the_last_layers_alone(workspace, tune, base):
    run = tune("probe", "--set", "tuning.probe_steps=4", "--set", "tuning.reference=")
    assert workspace.runs.get(run).total_steps == 4
    before, after = weights(workspace, base), weights(workspace, run)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name for name in changed if name.startswith("towers.")} == {
        "towers.visual.proj",
        "towers.text.text_projection",
    }


def test_lora_is_merged_where_it_is_opened_and_peft_computes_the_same(workspace, base, lora, tmp_path):
    open_clip, peft = pytest.importorskip("open_clip"), pytest.importorskip("peft")
    for run, form in ((base, "open_clip"), (lora, "open_clip"), (lora, "peft")):
        export_model(workspace, run, tmp_path / f"{run}-{form}", form)
    plain, _ = open_clip.create_model_from_pretrained(f"local-dir:{tmp_path / f'{base}-open_clip'}")
    merged, _ = open_clip.create_model_from_pretrained(f"local-dir:{tmp_path / f'{lora}-open_clip'}")
    with_adapter = peft.PeftModel.from_pretrained(plain, str(tmp_path / f"{lora}-peft")).eval()
    opened = open_run(workspace, lora, on="cpu")
    pixels = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    tokens = opened.tokenizer.encode(["stripes of red and blue", "a green star"], opened.context_length)
    with torch.inference_mode():
        for encode, given in (("encode_image", pixels), ("encode_text", tokens)):
            theirs = getattr(with_adapter.get_base_model(), encode)(given, normalize=True)
            assert (theirs - getattr(merged, encode)(given, normalize=True)).abs().max() <= 1e-6
            assert (theirs - getattr(opened.model, encode)(given)).abs().max() <= 1e-6


def test_an_adapter_of_peft_is_read_as_peft_computes_it(workspace, base, tmp_path):
    open_clip, peft = pytest.importorskip("open_clip"), pytest.importorskip("peft")
    export_model(workspace, base, tmp_path / "base", "open_clip")
    plain, _ = open_clip.create_model_from_pretrained(f"local-dir:{tmp_path / 'base'}")
    chosen = peft.LoraConfig(r=3, lora_alpha=5, target_modules=["attn", "c_fc"], init_lora_weights=False)
    theirs = peft.get_peft_model(plain, chosen).eval()
    theirs.save_pretrained(tmp_path / "adapter")
    opened = open_run(workspace, base, on="cpu")
    attach(opened.model, rank=1, alpha=1.0, targets="mlp", adapter=read_adapter(tmp_path / "adapter"))
    pixels = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = theirs.get_base_model().encode_image(pixels, normalize=True)
        assert (opened.model.eval().encode_image(pixels) - expected).abs().max() <= 1e-6


def test_only_lora_learns_and_training_goes_on_from_an_adapter_of_peft(workspace, tune, base, lora, tmp_path):
    export_model(workspace, lora, tmp_path / "adapter", "peft")
    raw = checkpoint.newest(workspace.runs.get(lora).folder / "checkpoints")[0].weights
    before = weights(workspace, base)
    frozen = {name: value for name, value in raw.items() if ".parametrizations." not in name}
    assert all(torch.equal(before[name], value) for name, value in frozen.items() if name.startswith("towers."))
    again = tune("again", "--set", f"tuning.adapter={tmp_path / 'adapter'}", "--set", "tuning.reference=")
    first, merged = weights(workspace, again, 0), weights(workspace, lora)
    towers = [name for name in merged if name.startswith("towers.")]
    assert all(torch.equal(first[name], merged[name]) for name in towers)
    assert any(not torch.equal(weights(workspace, again)[name], merged[name]) for name in towers)


def test_a_mix_is_the_base_at_0_and_the_tuned_run_at_1_bit_for_bit(workspace, base, tuned, capsys):
    workspace.runs.rename(tuned, "tuned, 2")  # as the second of a name is called, with a space
    arguments = ["evaluate", "tuned, 2", "--interpolate", "0", ".25", "1", "--json"]
    assert main([*arguments, "--workspace", str(workspace.folder)]) == 0
    answer = json.loads(capsys.readouterr().out)
    run = answer["id"]
    ends = {0: weights(workspace, base), 100: weights(workspace, tuned)}
    for percent, expected in ends.items():
        found = weights(workspace, run, percent)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    for split in ("heldout", "renderings"):
        last = workspace.runs.get(tuned).step
        for percent, step in ((0, 0), (100, last)):
            mine, theirs = (embeddings(workspace, *of) for of in ((run, split, percent), (tuned, split, step)))
            assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
    between = weights(workspace, run, 25)
    for name, value in between.items():
        if value.is_floating_point():
            expected = 0.75 * ends[0][name].double() + 0.25 * ends[100][name].double()
            assert torch.equal(value, expected.to(value.dtype))
    assert answer["best"] in (0, 25, 100)
    assert {(row["set"], row["alpha"]) for row in answer["numbers"]} == {
        (name, alpha) for name in ("own", "reference") for alpha in (0, 0.25, 1)
    }
    assert {row.step for row in workspace.results.checkpoints(run) if row.best} == {answer["best"]}


def test_a_mix_that_was_stopped_is_resumed_where_it_was(workspace, tuned, monkeypatch):
    run = workspace.runs.create(mix_run(workspace, [tuned], "0 .5 1", name="stopped"))
    visit, visited = MetricLogger.visit, []

    def visiting(logger: MetricLogger, step: int) -> None:
        visit(logger, step)
        visited.append(step)

    monkeypatch.setattr(MetricLogger, "visit", visiting)
    with monkeypatch.context() as patched:
        patched.setattr(ControlFlags, "now", lambda control: "stop" if visited else None)
        fit(workspace, run)
    assert (workspace.runs.get(run).status, visited) == ("stopped", [50])
    fit(workspace, run)
    row = workspace.runs.get(run)
    assert (row.status, visited, row.facts["mixed"]["best"] in (0, 50, 100)) == ("finished", [50, 100], True)
    end = weights(workspace, tuned)
    assert all(torch.equal(value, end[name]) for name, value in weights(workspace, run, 100).items())


def test_a_soup_is_the_mean_of_its_runs(workspace, tuned, tune):
    other = tune("other", "--set", "optimizer.learning_rate=3e-4", "--set", "seed=1")
    run = workspace.runs.create(mix_run(workspace, [tuned, other], "0 1", reference="none"))
    fit(workspace, run)
    soup, parts = weights(workspace, run, 100), [weights(workspace, each) for each in (tuned, other)]
    for name, value in soup.items():
        if value.is_floating_point():
            assert torch.equal(value, ((parts[0][name].double() + parts[1][name].double()) / 2).to(value.dtype))


def test_runs_of_different_bases_are_not_mixed(workspace, base, tuned):
    with pytest.raises(config.ConfigError, match="does not say what it was fine-tuned from"):
        mix_run(workspace, [base])
    trained = config.replace(mix_run(workspace, [tuned]), "optimizer.epochs", "1")
    with pytest.raises(config.ConfigError, match="a mix of runs trains nothing"):
        workspace.runs.create(trained)


def test_both_courses_are_those_of_the_snapshots(workspace, tuned):
    data = CHART.result(workspace, Request((Target(tuned),)), CHART.settings(), lambda share, note: None)
    last = workspace.runs.get(tuned).step
    for name, split in (("own", "heldout"), ("reference", "renderings")):
        first, now = (_answers(workspace, tuned, split, step) for step in (0, last))
        rows = [row for row in course_rows(data.found[0]) if row["set"] == name and row["step"] == last]
        for row in (row for row in rows if row["measure"] in now):
            assert row["n"] == len(now[row["measure"]])
            assert row["share"] == pytest.approx(now[row["measure"]].mean())
            assert row["change"] == pytest.approx(now[row["measure"]].mean() - first[row["measure"]].mean())
        assert {row["measure"] for row in rows} >= {"image_to_text", "text_to_image"}
    panel = CHART.panel(data, CHART.settings())
    assert [curve.dashed for curve in panel.mark("course").curves] == [False, True]


def _answers(workspace: Workspace, run: int, split: str, step: int) -> dict[str, np.ndarray]:
    row = next(s for s in workspace.results.snapshots(run) if (s.split, s.step) == (split, step))
    snapshot = read_snapshot(row.folder)
    return right_answers(snapshot.image, snapshot.text, matching_of(snapshot))


@pytest.mark.shared
@few_plain(1, ("name", "split"), [("emoji-pairs", "val"), ("clothing-cc0", "test")])
def test_real_pairs_are_learned_with_scenes_as_the_reference_set(workspace, base, shared_data, name, split):
    """Runs of assets/docs/measurements/fine-tuning.md in small: both sets are measured at the first and last step."""
    data = shared_data / name / split
    changes = ("data.train_share=0.1", "optimizer.epochs=1", "optimizer.batch_size=16", "watching.snapshots=2")
    arguments = [part for change in changes for part in ("--set", change)]
    command = ["fit", "--from", str(base), "--data", str(data), "--name", f"real {name}", *arguments]
    assert main([*command, "--workspace", str(workspace.folder)]) == 0
    row = workspace.runs.get(f"real {name}")
    answer = CHART.result(workspace, Request((Target(row.id),)), CHART.settings(), lambda share, note: None)
    rows = course_rows(answer.found[0])
    assert {(each["set"], each["step"]) for each in rows} >= {
        (part, step) for part in ("own", "reference") for step in (0, row.step)
    }
    first = workspace.results.series(row.id, "reference/image_to_text_R@1")[1][0]
    assert first == workspace.results.series(base, "val/image_to_text_R@1")[1][-1]


def test_runs_from_scratch_have_a_line_each_and_other_data_is_said():
    shares = {"image_to_text": {0: StepShare(0.0, 20), 8: StepShare(0.5, 20)}}
    courses = Course("own", "heldout", shares), Course("scenes", "renderings", shares)
    tuned, other = Forgetting(1, "tuned", False, *courses), Forgetting(2, "CLOOB", False, courses[1], None)
    panel = CHART.panel(PerRun((tuned, other), (0, 1)), CHART.settings())
    names = [[curve.name for curve in panel.mark(key).curves] for key in ("course", "course-1")]
    assert names == [["tuned, own data", "tuned, reference set"], ["CLOOB"]]
    assert panel.mark("course").note == "", "each line is named"
    (warning,) = panel.warnings
    assert warning.startswith("Different data: ")
    assert "tuned on own, held-out" in warning
