"""Plug-ins of a file: fields, training, resume, memory of the run; broken ones are told and left out."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer import config, plugins
from trainer.config.extension import PluginObjective
from trainer.plugins import loaded_plugins
from trainer.store import Workspace, read_snapshot
from trainer.untrusted.safe_subprocess import python

PLUGIN = Path(__file__).with_name("clip_by_margin.py")
TINY = (
    *("model.image_size=32", "model.image_width=8", "model.text_width=32", "model.text_layers=1"),
    *("model.text_heads=2", "model.context_length=16", "model.embed_dim=16", "optimizer.batch_size=8"),
    *("optimizer.warmup_steps=2", "watching.evaluate_every=2", "watching.log_every=1"),
    *("watching.snapshots=2", "watching.checkpoint_every=2"),
)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch):
    """Forget plug-ins before and after the test."""
    monkeypatch.delenv(plugins.FILES, raising=False)
    monkeypatch.setattr(loaded_plugins, "_LOADED", loaded_plugins.LoadedPlugins())
    monkeypatch.setattr(loaded_plugins, "_DONE", set())
    sections = dict(config.SECTIONS)
    yield monkeypatch
    config.SECTIONS.update(sections)


def load(monkeypatch: pytest.MonkeyPatch, *files: Path) -> loaded_plugins.LoadedPlugins:
    monkeypatch.setenv(plugins.FILES, os.pathsep.join(map(str, files)))
    return plugins.load_all()


def test_a_file_adds_its_kinds_to_the_configuration(fresh):
    found = load(fresh, PLUGIN)
    assert found.failures == []
    kind = config.SECTIONS["objective"][-1]
    assert (kind.kind, kind.label, issubclass(kind, PluginObjective)) == ("hinge_pairs", "Hinge", True)
    run = config.replace(config.Run(), "objective", "hinge_pairs")
    run = config.replace(run, "objective.margin", "0.5")
    config.check(run)
    text = config.to_toml(run)
    assert 'plugin = "clip_by_margin.py"' in text
    assert config.from_toml(text) == run
    with pytest.raises(config.ConfigError, match=r"objective.margin 3.0 is too large"):
        config.replace(run, "objective.margin", "3")
    assert list(found.metrics) == ["clip_by_margin.py"]


@pytest.mark.slow
def test_the_loss_is_that_of_a_loop(fresh):
    torch = pytest.importorskip("torch")
    load(fresh, PLUGIN)
    rng = np.random.default_rng(0)
    image, text = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.normal(size=(2, 5, 3)))
    expected = np.mean(
        [max(0.0, 0.2 - image[i] @ text[i] + image[i] @ text[j]) for i in range(5) for j in range(5) if i != j]
    )
    objective = config.SECTIONS["objective"][-1]()
    pair = [torch.from_numpy(x).requires_grad_() for x in (image, text)]
    assert objective.loss(*pair).item() == pytest.approx(expected, rel=1e-6)


def test_a_run_of_a_plug_in_that_is_not_loaded_names_it_and_loads_nothing(fresh, tmp_path: Path):
    file = tmp_path / "evil.py"
    file.write_text("raise SystemExit('loaded')")
    text = config.to_toml(config.Run()).replace('kind = "clip"', f'kind = "mine"\nplugin = "{file}"')
    with pytest.raises(config.ConfigError, match=r"comes from the plug-in .*evil.py, which is not loaded"):
        config.from_toml(text)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no')", "no"),
        ("raise SystemExit('leaves')", "leaves"),
        ("x = 1", "defines none of OBJECTIVE"),
        ("OBJECTIVE = int", "derives from PluginObjective"),
        ("METRICS = 3", "is not a function"),
        ("def broken(:", "invalid syntax"),
        (
            PLUGIN.read_text().replace('kind: ClassVar[str] = "hinge_pairs"', 'kind: ClassVar[str] = "clip"'),
            "another objective of the kind 'clip'",
        ),
    ],
)
def test_a_broken_one_is_told_and_the_next_is_loaded(fresh, tmp_path: Path, source: str, said: str):
    (tmp_path / "broken.py").write_text(source)
    found = load(fresh, tmp_path / "broken.py", tmp_path / "missing.py", PLUGIN)
    assert len(found.failures) == 2
    assert "broken.py" in found.failures[0]
    assert said in found.failures[0]
    assert "missing.py" in found.failures[1]
    assert any(kind.kind == "hinge_pairs" for kind in config.SECTIONS["objective"])


@pytest.mark.slow
def test_torch_at_the_top_of_a_plug_in_is_refused_where_the_window_loads_it(tmp_path: Path):
    (tmp_path / "heavy.py").write_text("import torch\n")
    code = "import sys; from trainer import plugins; print(plugins.load_all().failures, 'torch' in sys.modules)"
    env = os.environ | {plugins.FILES: str(tmp_path / "heavy.py")}
    said = subprocess.run(python("-c", code), env=env, capture_output=True, text=True, check=True).stdout
    assert "import it inside of its functions" in said
    assert said.strip().endswith("False")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_objective_data_towers_and_metric_train_together(tmp_path: Path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    rng = np.random.default_rng(0)
    for i in range(40):
        color = tuple(int(c) for c in rng.integers(0, 255, 3))
        Image.new("RGB", (32, 32), color).save(pictures / f"color-{i}-of-{color[0]}.png")
    changes = ["objective=hinge_pairs", "data=named_pictures", f"data.path={pictures}", "model=mean_colors", *TINY]
    words = [word for change in [*changes, "optimizer.epochs=2"] for word in ("--set", change)]

    def trainer(*command: str, plugin: bool = True) -> subprocess.CompletedProcess[str]:
        line = [*python("-m", "trainer"), *command, "--workspace", str(tmp_path / "ws")]
        line += ["--plugin", str(PLUGIN)] if plugin else []
        return subprocess.run(line, capture_output=True, text=True, check=False)

    made = trainer("fit", "--preset", "clip-folder", *words, "--json")
    assert made.returncode == 0, made.stderr
    answer = json.loads(made.stdout)
    assert answer["status"] == "finished"
    workspace = Workspace(tmp_path / "ws")
    results = workspace.results
    _, lengths, _ = results.series(answer["id"], "val/mean_length")
    snapshots = results.snapshots(answer["id"])
    image = np.asarray(read_snapshot(max(snapshots, key=lambda one: one.step).folder).image, np.float64)
    assert lengths[-1] == pytest.approx(float(np.linalg.norm(image.mean(axis=0))), rel=1e-4)
    _, losses, _ = results.series(answer["id"], "train/loss")
    assert len(losses) == answer["step"]
    told = trainer("evaluate", str(answer["id"]), "--json", plugin=False)
    assert told.returncode == 2
    assert "clip_by_margin.py, which is not loaded" in told.stderr


def test_contributing_shows_this_plug_in():
    text = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## How to write a plug-in")[2].partition("\n## ")[0]
    blocks = section.split("```python\n")[1:]
    source = PLUGIN.read_text(encoding="utf-8")
    assert len(blocks) == 5
    assert all(block.partition("\n```")[0] in source for block in blocks)
