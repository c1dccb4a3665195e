"""A run's model in other libraries: opened by them, the embeddings are those of the run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from open_clip.transform import image_transform
from PIL import Image
from safetensors.torch import load_file

from tests.nightly import few_plain, nightly_except
from tests.trainer.conftest import upright
from trainer import api as ce
from trainer import config
from trainer.__main__ import main
from trainer.data.tokenizers import ClipTokenizer
from trainer.errors import UserError
from trainer.images import Preprocessing
from trainer.inference import hub_upload
from trainer.inference.export_model import write_clip_pairs
from trainer.inference.model_cache import ModelCache
from trainer.inference.open_model import OpenModel, open_run
from trainer.inference.transformers_layout import image_processor
from trainer.models import build, file_preprocessing_of
from trainer.pretrained import PretrainedError, find, model_of, start_from
from trainer.store import Workspace
from trainer.training.fit import fit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TINY = config.Run(
    name="tiny",
    device="cpu",
    data=config.Scenes(train_pairs=64, heldout_pairs=16),
    model=config.TinyTowers(
        image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, context_length=16, embed_dim=16
    ),
    optimizer=config.Optimizer(batch_size=32, epochs=1, warmup_steps=1),
    watching=config.Watching(evaluate_every=100, snapshots=2),
)
TEXTS = ["a red circle to the left of a blue square", "A  GREEN star, far above!", "été ß 漢", "x " * 40]


@pytest.fixture(scope="module")
def trained(trained_once) -> Workspace:
    """A ResNet, a ViT, one of SigLIP and one with projections of two layers after two updates, in one workspace."""
    return trained_once("export", _train)


def _train(folder: Path) -> None:
    workspace = Workspace(folder / "workspace")
    for tower in ("resnet", "vit"):
        fit(workspace, workspace.runs.create(replace(TINY, name=tower, model=replace(TINY.model, image_tower=tower))))
    siglip = config.SigLip(bias_from_batch=False)
    vit = replace(TINY.model, image_tower="vit")
    fit(workspace, workspace.runs.create(replace(TINY, name="siglip", model=vit, objective=siglip)))
    deep = replace(TINY.model, projection="mlp")
    fit(workspace, workspace.runs.create(replace(TINY, name="deep", model=deep)))
    workspace.close()


def inputs(opened: OpenModel) -> tuple[torch.Tensor, torch.Tensor]:
    size = opened.image_size
    pixels = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 3, size, size)).astype(np.float32))
    return pixels, opened.tokenizer.encode(TEXTS, opened.context_length)


def exported(workspace: Workspace, run: str, form: str, folder: Path, capsys) -> dict[str, object]:
    words = ["runs", "export", run, "--format", form, "--out", str(folder), "--json"]
    assert main([*words, "--workspace", str(workspace.folder)]) == 0
    return json.loads(capsys.readouterr().out)


@few_plain(1, "run", ["resnet", "vit"])
def test_open_clip_opens_towers_scale_and_tokenizer(trained, tmp_path: Path, capsys, run: str):
    open_clip = pytest.importorskip("open_clip")
    answer = exported(trained, run, "open_clip", tmp_path / "out", capsys)
    assert "open_clip_config.json" in answer["files"]
    opened = open_run(trained, trained.runs.get(run).id, on="cpu")
    model, _ = open_clip.create_model_from_pretrained(f"local-dir:{tmp_path / 'out'}")
    model.eval()
    pixels, tokens = inputs(opened)
    with torch.inference_mode():
        ours = opened.model.encode_image(pixels), opened.model.encode_text(tokens)
        theirs = model.encode_image(pixels, normalize=True), model.encode_text(tokens, normalize=True)
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).abs().max().item() < 1e-5
    _, scale, _ = trained.results.series(trained.runs.get(run).id, "train/inv_tau")
    assert model.logit_scale.exp().item() == pytest.approx(scale[-1], rel=1e-2)


def encoded(workspace: Workspace, run: str, images: list[object]) -> np.ndarray:
    return ce.workspace(workspace.folder).run(run).model(None).encode_image(images)


def read_by_pillow(pictures: list[Path]) -> tuple[list[Path], list[Image.Image]]:
    """Return the pictures of which torchvision makes a square, as their library would get them from its user."""
    decoded = {path: upright(path) for path in pictures}
    kept = {path: image for path, image in decoded.items() if 1 / 64 < image.width / image.height < 64}
    return list(kept), list(kept.values())


@pytest.fixture
def files(odd_pictures: list[Path], tmp_path: Path) -> list[Path]:
    """Return JPEGs and PNGs from 1 to 3,000 pixels wide; most were decoded at a fraction of their size for training."""
    large = Image.fromarray(np.random.default_rng(1).integers(0, 256, (20, 30, 3), np.uint8)).resize((3000, 2000))
    large.save(tmp_path / "large.jpg")
    return [*odd_pictures, tmp_path / "large.jpg"]


@pytest.mark.parametrize("run", nightly_except(["resnet", "vit"], "vit"))
def test_files_are_embedded_as_by_open_clip_with_its_own_preprocessing(
    trained, tmp_path: Path, files: list[Path], capsys, run: str
):
    open_clip = pytest.importorskip("open_clip")
    exported(trained, run, "open_clip", tmp_path / "out", capsys)
    model, preprocess = open_clip.create_model_from_pretrained(f"local-dir:{tmp_path / 'out'}")
    paths, images = read_by_pillow(files)
    with torch.inference_mode():
        theirs = model.eval().encode_image(torch.stack([preprocess(one) for one in images]), normalize=True).numpy()
    assert len(paths) >= 40
    assert np.abs(encoded(trained, run, paths) - theirs).max() < 1e-5
    assert np.abs(encoded(trained, run, images) - theirs).max() < 1e-5
    arrays = [np.asarray(one) for one in images if one.mode == "RGB"]
    rows = [row for row, one in enumerate(images) if one.mode == "RGB"]
    assert np.abs(encoded(trained, run, arrays) - theirs[rows]).max() < 1e-5


def test_files_are_embedded_as_by_transformers_with_its_own_preprocessing(
    trained, tmp_path: Path, files: list[Path], capsys
):
    """Its crop lies a pixel beside open_clip's where the longer side is 3, 7, ... pixels longer than the square."""
    transformers = pytest.importorskip("transformers", reason="the extra [hf] is not installed")
    exported(trained, "vit", "hf", tmp_path / "out", capsys)
    model = transformers.CLIPModel.from_pretrained(tmp_path / "out").eval()
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "out", backend="pil")
    paths, images = read_by_pillow(files)
    longer = [int(32 * max(one.size) / min(one.size)) - 32 for one in images]
    alike = [row for row, one in enumerate(images) if one.mode in ("RGB", "L") and longer[row] % 4 != 3]
    assert len(alike) >= 20
    with torch.inference_mode():
        pixels = torch.cat([processor(images[row], return_tensors="pt").pixel_values for row in alike])
        tokens = torch.ones(len(alike), 4, dtype=torch.long)
        theirs = model(pixel_values=pixels, input_ids=tokens).image_embeds.numpy()
    assert np.abs(encoded(trained, "vit", [paths[row] for row in alike]) - theirs).max() < 1e-5


def test_the_processor_of_transformers_says_how_a_published_model_reads():
    squash = image_processor(Preprocessing(32, "squash", "lanczos", (0.5,) * 3, (0.5,) * 3))
    assert squash["size"] == {"height": 32, "width": 32}
    assert not squash["do_center_crop"]
    assert squash["resample"] == Image.Resampling.LANCZOS
    with pytest.raises(UserError, match="does not fill a square"):
        image_processor(Preprocessing(32, "longest", "bicubic", (0.5,) * 3, (0.5,) * 3))


def test_the_tokenizer_gives_the_same_rows_in_open_clip(trained, tmp_path: Path, capsys):
    pytest.importorskip("transformers", reason="the extra [hf] is not installed")
    open_clip = pytest.importorskip("open_clip")
    exported(trained, "resnet", "open_clip", tmp_path / "out", capsys)
    theirs = open_clip.get_tokenizer(f"local-dir:{tmp_path / 'out'}")
    opened = open_run(trained, trained.runs.get("resnet").id, on="cpu")
    plain = [TEXTS[0], "a green star", TEXTS[3]]
    assert torch.equal(theirs(plain), opened.tokenizer.encode(plain, opened.context_length))


def test_transformers_opens_towers_scale_tokenizer_and_pixels(trained, tmp_path: Path, capsys):
    transformers = pytest.importorskip("transformers", reason="the extra [hf] is not installed")
    exported(trained, "vit", "hf", tmp_path / "out", capsys)
    opened = open_run(trained, trained.runs.get("vit").id, on="cpu")
    model = transformers.CLIPModel.from_pretrained(tmp_path / "out").eval()
    pixels, tokens = inputs(opened)
    with torch.inference_mode():
        found = model(pixel_values=pixels, input_ids=tokens)
        ours = opened.model.encode_image(pixels), opened.model.encode_text(tokens)
    assert (found.image_embeds - ours[0]).abs().max().item() < 1e-5
    assert (found.text_embeds - ours[1]).abs().max().item() < 1e-5
    _, scale, _ = trained.results.series(trained.runs.get("vit").id, "train/inv_tau")
    assert model.logit_scale.exp().item() == pytest.approx(scale[-1], rel=1e-2)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    plain = ["a green star", TEXTS[0]]
    rows = tokenizer(plain, padding="max_length", max_length=opened.context_length, return_tensors="pt").input_ids
    assert torch.equal(rows, opened.tokenizer.encode(plain, opened.context_length))
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "out")
    assert processor.crop_size["height"] == opened.image_size


def test_towers_that_transformers_lacks_are_refused_in_words(trained, tmp_path: Path, capsys):
    words = ["runs", "export", "resnet", "--format", "hf", "--out", str(tmp_path / "out")]
    assert main([*words, "--workspace", str(trained.folder)]) == 2
    assert "no image tower like ModifiedResNet" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["open_clip", "hf"])
def test_projections_of_two_layers_are_refused_where_the_form_lacks_them(trained, tmp_path: Path, capsys, form: str):
    words = ["runs", "export", "deep", "--format", form, "--out", str(tmp_path / "out")]
    assert main([*words, "--workspace", str(trained.folder)]) == 2
    assert "projections of two layers" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_byte_pairs_of_clip_are_those_of_transformers(tmp_path: Path):
    transformers = pytest.importorskip("transformers", reason="the extra [hf] is not installed")
    own = ClipTokenizer()
    write_clip_pairs(tmp_path, own)
    theirs = transformers.CLIPTokenizer.from_pretrained(tmp_path)
    for text in ("A photo of a cat, isn't it?", "été 42 dogs", "x " * 40):
        row = own.encode([text], 77)[0].tolist()
        wanted = theirs(text, truncation=True, max_length=77).input_ids
        assert row[: len(wanted)] == wanted


@few_plain(
    1,
    ("run", "form"),
    nightly_except(
        [
            [run, form]
            for run in ("resnet", "vit", "siglip")
            for form in ("open_clip", "hf", "safetensors")
            if (run, form) != ("resnet", "hf")
        ],
        ["vit", "hf"],
        ["resnet", "safetensors"],
        ["siglip", "open_clip"],
    ),
)
def test_what_was_exported_opens_again(trained, tmp_path: Path, capsys, run: str, form: str):
    folder = tmp_path / "out"
    exported(trained, run, form, folder, capsys)
    opened = open_run(trained, trained.runs.get(run).id, on="cpu")
    found = find(model_of(str(folder)), cache=tmp_path, progress=lambda *_: None)
    towers = build(found.blueprint, vocabulary=found.tokenizer.size).eval()
    start_from(found, towers)
    pixels, tokens = inputs(opened)
    plain = [TEXTS[0], "a green star", TEXTS[3]]
    length = opened.context_length
    assert torch.equal(found.tokenizer.encode(plain, length), opened.tokenizer.encode(plain, length))
    with torch.inference_mode():
        pairs = [(opened.model.encode_image(pixels), towers.encode_image(pixels))]
        pairs.append((opened.model.encode_text(tokens), towers.encode_text(tokens)))
    assert all((one - other).abs().max().item() < 1e-5 for one, other in pairs)
    assert file_preprocessing_of(found.blueprint) == opened.file_preprocessing
    assert "assumed" not in found.origin
    kept = ModelCache(trained).get(trained.runs.get(run).id)
    assert found.learned.kind == ("siglip" if run == "siglip" else "clip")
    assert found.learned.inv_tau == pytest.approx(kept.inv_tau, rel=1e-5)
    assert found.learned.bias == (None if run != "siglip" else pytest.approx(kept.method.logit_bias, rel=1e-6))


def test_graphs_of_onnx_are_refused_in_words(tmp_path: Path):
    (tmp_path / "image.onnx").write_bytes(b"")
    with pytest.raises(PretrainedError, match="graphs of ONNX, which tell no towers"):
        model_of(str(tmp_path))


class _Hub:
    """Stands in for the client of the hub."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.calls = fails, []

    def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> None:
        self.calls.append(("create", repo_id, private))

    def upload_folder(self, *, repo_id: str, folder_path: str, commit_message: str) -> str:
        if self.fails:
            raise ConnectionError("401 Client Error.\nRequest ID: 1")
        self.calls.append(("upload", repo_id, sorted(file.name for file in Path(folder_path).iterdir())))
        return "https://hub.example/commit/1"


def test_a_folder_is_pushed_by_the_client_of_the_hub(trained, tmp_path: Path, capsys, monkeypatch):
    hub = _Hub()
    monkeypatch.setattr(hub_upload, "hub_client", lambda: hub)
    words = ["runs", "export", "vit", "--format", "hf", "--out", str(tmp_path / "out"), "--push", "me/tiny", "--json"]
    assert main([*words, "--workspace", str(trained.folder)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["pushed"] == "https://hub.example/commit/1"
    assert hub.calls == [("create", "me/tiny", True), ("upload", "me/tiny", answer["files"])]


def test_what_the_hub_refuses_is_told_and_the_folder_stays(tmp_path: Path):
    with pytest.raises(UserError, match=r"not pushed to me/tiny: 401 Client Error\. Log in once"):
        hub_upload.push(tmp_path, "me/tiny", client=lambda: _Hub(fails=True))
    with pytest.raises(UserError, match="name a repository"):
        hub_upload.push(tmp_path, "tiny", client=_Hub)


def test_safetensors_hold_the_weights_bit_for_bit(trained, tmp_path: Path, capsys):
    exported(trained, "resnet", "safetensors", tmp_path / "out", capsys)
    opened = open_run(trained, trained.runs.get("resnet").id, on="cpu")
    found = load_file(tmp_path / "out" / "model.safetensors")
    own = opened.model.state_dict()
    assert found.keys() == own.keys()
    assert all(torch.equal(found[name], own[name]) for name in own)
    assert config.read(tmp_path / "out" / "config.toml").model == TINY.model


@pytest.mark.parametrize("run", nightly_except(["resnet", "vit", "deep"], "vit"))
def test_onnx_runtime_gives_the_same_embeddings(trained, tmp_path: Path, files: list[Path], capsys, run: str):
    pytest.importorskip("onnxscript", reason="the extra [onnx] is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
    exported(trained, run, "onnx", tmp_path / "out", capsys)
    opened = open_run(trained, trained.runs.get(run).id, on="cpu")
    pixels, tokens = inputs(opened)
    with torch.inference_mode():
        ours = {"image": opened.model.encode_image(pixels), "text": opened.model.encode_text(tokens)}
    for side, (name, given) in {"image": ("pixels", pixels), "text": ("tokens", tokens)}.items():
        session = runtime.InferenceSession(tmp_path / "out" / f"{side}.onnx", providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {name: given.numpy()})
        assert np.abs(found - ours[side].numpy()).max() < 1e-4
    told = json.loads((tmp_path / "out" / "model.json").read_text())["preprocess_cfg"]
    paths, images = read_by_pillow(files)
    preprocess = image_transform(opened.image_size, is_train=False, **told)
    session = runtime.InferenceSession(tmp_path / "out" / "image.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"pixels": torch.stack([preprocess(one) for one in images]).numpy()})
    assert np.abs(found - encoded(trained, run, paths)).max() < 1e-4


def test_a_folder_that_exists_is_left_alone(trained, tmp_path: Path, capsys):
    (tmp_path / "kept").mkdir()
    words = ["runs", "export", "resnet", "--out", str(tmp_path / "kept"), "--workspace", str(trained.folder)]
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert list((tmp_path / "kept").iterdir()) == []
