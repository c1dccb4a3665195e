"""A published model becomes a run that can be inspected, fine-tuned and resumed like any other."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.nightly import few_plain
from trainer import config, pretrained
from trainer.__main__ import main
from trainer.data import read_image
from trainer.data.tokenizer import train_tokenizer
from trainer.inference.model_cache import ModelCache
from trainer.inference.predictions import predict
from trainer.messages import Classify
from trainer.models import build
from trainer.store import Workspace, read_snapshot
from trainer.training.fit import fit
from trainer.training.optimizer import build as build_optimizer
from trainer.training.optimizer import learning_rate, parameter_groups, set_learning_rate
from trainer.training.session import TrainingSession

pytestmark = pytest.mark.slow

FEW = ["--set", "data.train_pairs=96", "--set", "data.heldout_pairs=24", "--set", "device=cpu"]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("opened"))


@pytest.fixture(scope="module")
def opened(workspace, hub_folder) -> int:
    arguments = ["open", str(hub_folder), "--name", "hub", *FEW, "--workspace", str(workspace.folder)]
    assert main(arguments) == 0
    return workspace.runs.get("hub").id


@torch.inference_mode()
def test_an_opened_model_is_a_finished_run_with_snapshots_of_its_embeddings(workspace, opened, clip):
    row = workspace.runs.get(opened)
    assert (row.status, row.step) == ("finished", 0)
    assert [one.step for one in workspace.results.checkpoints(opened)] == [0]
    snapshot = read_snapshot(workspace.results.snapshots(opened)[0].folder)
    assert (snapshot.image.shape, snapshot.text.shape) == ((24, 16), (24, 16))
    image = torch.from_numpy(read_image(snapshot.items.path[3], 32)).permute(2, 0, 1)[None] / 255
    own = clip.encode_image((image - 0.5) / 0.25, normalize=True)[0].numpy()
    assert np.asarray(snapshot.image[3], np.float32) @ own == pytest.approx(1, abs=1e-3)
    kept = ModelCache(workspace).get(opened)
    assert kept.inv_tau == pytest.approx(37, rel=1e-4)
    assert (kept.objective, kept.opened.image_size) == ("CLIP", 32)


def test_labels_are_answered(workspace, opened):
    picture = read_snapshot(workspace.results.snapshots(opened)[0].folder).items.path[0]
    asked = {"labels": ("a ring", "a star"), "templates": ("a photo of {}.",)}
    answer = predict(ModelCache(workspace), Classify(runs=(opened,), images=(picture,), **asked))
    assert sum(answer.runs[opened].probabilities[0]) == pytest.approx(1)


def test_a_run_needs_the_folder_only_once(workspace, hub_folder, tmp_path, monkeypatch):
    """Fine-tuning stopped, and resumed after the model's folder is gone, ends with the same bits."""
    moved = tmp_path / "model"
    shutil.copytree(hub_folder, moved)
    made = config.Run(
        name="whole",
        device="cpu",
        data=config.Scenes(train_pairs=96, heldout_pairs=24),
        model=config.OpenClip(name=f"local-dir:{moved}"),
        optimizer=config.Optimizer(batch_size=32, epochs=2, learning_rate=1e-3, warmup_steps=1, layer_decay=0.5),
        watching=config.Watching(log_every=1, evaluate_every=3, snapshots=2, checkpoint_every=3),
    )
    whole, halved = (workspace.runs.create(replace(made, name=name)) for name in ("whole", "halved"))
    fit(workspace, whole)
    update = TrainingSession.update

    def stopping(self: TrainingSession) -> object:
        if self.step == 2:
            workspace.runs.ask(halved, "stop")
        return update(self)

    monkeypatch.setattr(TrainingSession, "update", stopping)
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0)
    fit(workspace, halved)
    assert (workspace.runs.get(halved).status, workspace.runs.get(halved).step) == ("stopped", 3)
    shutil.rmtree(moved)
    monkeypatch.setattr(TrainingSession, "update", update)
    fit(workspace, halved)
    assert (workspace.runs.get(halved).status, workspace.runs.get(halved).step) == ("finished", 6)
    first, second = (ModelCache(workspace).get(run).opened.model.state_dict() for run in (whole, halved))
    assert all(first[name].equal(second[name]) for name in first)


def test_frozen_towers_stay_as_they_are(workspace, hub_folder, clip):
    model = config.OpenClip(name=f"local-dir:{hub_folder}", freeze="image")
    made = config.Run(
        name="frozen",
        device="cpu",
        data=config.Scenes(train_pairs=96, heldout_pairs=24),
        model=model,
        optimizer=config.Optimizer(batch_size=48, epochs=1, learning_rate=1e-2, warmup_steps=1),
        watching=config.Watching(snapshots=2),
    )
    run = workspace.runs.create(made)
    fit(workspace, run)
    towers = ModelCache(workspace).get(run).opened.model
    assert workspace.runs.get(run).status == "finished"
    assert towers.visual.conv1.weight.equal(clip.visual.conv1.weight)
    assert not towers.text.token_embedding.weight.equal(clip.token_embedding.weight)


@few_plain(
    2,
    ("freeze", "trained"),
    [
        (
            "none",
            {"visual.attnpool.c_proj.weight", "visual.conv1.weight", "text.text_projection", "text.ln_final.bias"},
        ),
        ("image", {"text.text_projection", "text.ln_final.bias"}),
        ("text", {"visual.attnpool.c_proj.weight", "visual.conv1.weight"}),
        ("all but projections", {"visual.attnpool.c_proj.weight", "text.text_projection"}),
    ],
)
def test_what_is_frozen(freeze, trained):
    tiny = config.TinyTowers(image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, embed_dim=16)
    towers = build(tiny, vocabulary=300)
    towers.freeze(freeze)
    learns = {name for name, parameter in towers.named_parameters() if parameter.requires_grad}
    looked_at = {"visual.attnpool.c_proj.weight", "visual.conv1.weight", "text.text_projection", "text.ln_final.bias"}
    assert learns & looked_at == trained
    towers.train()
    assert towers.visual.bn1.training == (freeze in ("none", "text"))


def test_the_rate_falls_from_layer_to_layer():
    tiny = config.TinyTowers(image_size=32, image_width=8, text_width=32, text_layers=3, text_heads=2, embed_dim=16)
    module = nn.ModuleDict({"towers": build(tiny, vocabulary=300)})
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    share = {
        names[id(parameter)]: group["share"]
        for group in parameter_groups(module, 0.1, layer_decay=0.5)
        for parameter in group["params"]
    }
    assert set(share) == set(names.values())
    assert share["towers.text.text_projection"] == share["towers.visual.attnpool.c_proj.weight"] == 1
    blocks = [share[f"towers.text.transformer.resblocks.{block}.mlp.c_fc.weight"] for block in range(3)]
    assert blocks == [1 / 8, 1 / 4, 1 / 2]
    assert share["towers.text.token_embedding.weight"] == 1 / 16
    stages = [share[f"towers.visual.layer{stage}.0.conv1.weight"] for stage in (1, 2, 3, 4)]
    assert stages == [1 / 16, 1 / 8, 1 / 4, 1 / 2]
    assert share["towers.visual.conv1.weight"] == share["towers.visual.bn1.bias"] == 1 / 32
    optimizer = build_optimizer(module, config.Optimizer(layer_decay=0.5))
    set_learning_rate(optimizer, 1.0)
    assert {group["lr"] for group in optimizer.param_groups} == {2.0**-k for k in range(6)}


def test_the_cosine_starts_anew_in_every_cycle():
    choice = config.Optimizer(learning_rate=1.0, warmup_steps=10, cycles=5)
    rates = [learning_rate(step, total_steps=110, choice=choice) for step in range(111)]
    assert [step for step in range(11, 110) if rates[step] > rates[step - 1]] == [30, 50, 70, 90]
    assert rates[30] == 1
    assert rates[110] == pytest.approx(0)


def test_an_architecture_by_name_is_built_with_random_weights(quiet, tmp_path):
    found = pretrained.find(config.OpenClip(name="RN50"), cache=tmp_path, progress=quiet)
    assert (found.weights, found.blueprint.image_size, found.blueprint.embed_dim) == (None, 224, 1024)
    assert (found.tokenizer.size, found.blueprint.context_length) == (49_408, 77)
    for name, size, width in (("RN101", 224, 512), ("RN50x4", 288, 640)):
        sizes = pretrained.find(config.OpenClip(name=name), cache=tmp_path, progress=quiet).blueprint
        assert (sizes.image_size, sizes.embed_dim) == (size, width)


def test_an_open_clip_run_is_opened_at_its_newest_epoch(tmp_path, quiet):
    import open_clip

    run = tmp_path / "2024-run"
    (run / "checkpoints").mkdir(parents=True)
    model = open_clip.create_model("ViT-S-32-alt")
    for epoch, scale in ((2, 20.0), (10, 50.0)):
        model.logit_scale.data.fill_(torch.tensor(scale).log())
        state = {f"module.{name}": value for name, value in model.state_dict().items()}
        torch.save({"epoch": epoch, "name": "x", "state_dict": state}, run / "checkpoints" / f"epoch_{epoch}.pt")
    (run / "params.txt").write_text("accum_freq: 1\nforce_quick_gelu: True\nmodel: ViT-S-32-alt\n")
    choice = pretrained.model_of(str(run))
    found = pretrained.find(choice, cache=tmp_path / "cache", progress=quiet)
    assert found.learned.inv_tau == pytest.approx(50)
    assert found.blueprint.config["quick_gelu"] is True
    assert "epoch_10.pt" in found.origin
    pretrained.start_from(found, build(found.blueprint, vocabulary=found.tokenizer.size))


@few_plain(
    1,
    ("model", "sentence"),
    [
        ("nothing-here", "is not a known model: write open_clip:NAME/TAG"),
        ("open_clip:RN5", "is not an architecture of open_clip"),
        ("open_clip:RN50/nobody", "open_clip has no weights 'nobody' of RN50; it has openai"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_no_finished_run(tmp_path, capsys, model, sentence):
    assert main(["open", model, *FEW, "--workspace", str(tmp_path / "w")]) == 2
    assert sentence in capsys.readouterr().err
    assert [row for row in Workspace(tmp_path / "w").runs.all() if row.status == "finished"] == []


def test_without_a_network_the_cause_and_the_next_step_are_told(tmp_path, capsys):
    assert main(["open", "hf-hub:somebody/model", *FEW, "--workspace", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "127.0.0.1:9 cannot be reached" in said
    assert "local-dir:FOLDER" in said
    assert Workspace(tmp_path).runs.get(1).status == "failed"


@pytest.mark.parametrize(
    ("note", "phase"),
    [
        ("Downloading b.safetensors: 1 of 9 MB", "Downloading b.safetensors: 1 of 9 MB"),
        ("Downloading b.safetensors: 1 MB", "Downloading b.safetensors: 1 MB 10 %"),
    ],
)
def test_a_download_is_the_phase_of_the_run_and_stops_when_asked(tmp_path, monkeypatch, note, phase):
    """A count is told as it is; the share is of the whole preparation, and is added where there is no count."""
    workspace = Workspace(tmp_path)
    made = config.Run(name="slow", device="cpu", model=config.OpenClip(name="hf-hub:a/b"))
    run = workspace.runs.create(made)
    phases: list[str] = []

    def slow(repository, names, *, cache, progress):
        for share in (0.1, 0.2, 0.9):
            progress(share, note)
            phases.append(workspace.runs.get(run).phase)
            workspace.runs.ask(run, "stop")
        raise AssertionError("the wish to stop was not heard")

    monkeypatch.setattr("trainer.pretrained.downloads.hub_file", slow)
    monkeypatch.setattr("trainer.store.run_log.ASKED_S", 0)
    fit(workspace, run)
    assert phases == [phase]
    assert (workspace.runs.get(run).status, workspace.runs.get(run).reason.split()[0]) == ("stopped", "Stopped")


def test_cloob_comes_as_cloob_at_its_own_temperature(tmp_path, quiet):
    model = config.OpenClip(name="x.pt")
    learned = pretrained.state_dict_formats.Learned("cloob", 30.0)
    from trainer.pretrained.register_run import _objective

    assert _objective(learned, model) == config.Cloob(inv_tau=30.0, scale_hopfield=8.0)
    yfcc = replace(model, name="/models/cloob_rn50_yfcc_epoch_28.pt")
    assert _objective(learned, yfcc) == config.Cloob(inv_tau=30.0, scale_hopfield=14.3)


def test_tiny_towers_take_other_tokenizers(workspace, tmp_path):
    """CLIP's, and a tokenizer.json; long texts keep their end token."""
    file = tmp_path / "tokenizer.json"
    file.write_text(train_tokenizer(["a red ring", "two red stars"], 300).to_json())
    for name in ("clip", str(file)):
        made = config.Run(
            name=f"with {name[-4:]}",
            device="cpu",
            data=config.Scenes(train_pairs=96, heldout_pairs=24),
            model=config.TinyTowers(
                image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, embed_dim=16, tokenizer=name
            ),
            optimizer=config.Optimizer(batch_size=32, epochs=0),
        )
        run = workspace.runs.create(made)
        fit(workspace, run)
        tokenizer = ModelCache(workspace).get(run).opened.tokenizer
        rows = tokenizer.encode(["ring " * 40, "star " * 40], 8)
        assert rows[:, -1].tolist() == [tokenizer.eot] * 2
        assert not rows[0].equal(rows[1])


def test_old_configurations_are_read():
    """Runs from before other models were supported have none of their fields."""
    text = config.to_toml(config.Run())
    lines = [line for line in text.splitlines() if line.split(" = ")[0] not in ("tokenizer", "layer_decay", "cycles")]
    assert config.from_toml("\n".join(lines)) == config.Run()
    assert json.loads(json.dumps(config.flatten(config.Run())))["model"] == "tiny"


def test_what_takes_long_is_said(workspace, hub_folder, capsys, monkeypatch):
    for module in ("fit", "metric_logger"):
        monkeypatch.setattr(f"trainer.training.{module}.SAY_S", 0.0)
    seeded = ["--set", "data.seed=3"]
    arguments = ["open", str(hub_folder), "--name", "told", *FEW, *seeded, "--workspace", str(workspace.folder)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    embedding = (
        "embedding 96 training pairs to find neighbors among",
        "embedding and measuring 24 pairs, unseen renderings",
    )
    for doing in ("Reading open_clip_model.safetensors", "Drawing", "Preparing images", *embedding):
        assert doing in said, said
    assert "% of the preparation)" in said
