"""Every number of an explained protocol against open_clip alone: its model, transform, tokenizer and classifier."""

import contextlib
import csv
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from open_clip.transformer import QuickGELU
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from tests.nightly import few_plain
from trainer.__main__ import main
from trainer.evaluation.run_tasks import evaluate_runs
from trainer.inference.model_cache import ModelCache
from trainer.messages import Evaluate
from trainer.store import Workspace
from trainer.store.task_records import TaskRecord

pytestmark = pytest.mark.slow
SIZES: dict[str, Any] = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 40, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8},
    "text_cfg": {"context_length": 24, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2},
}
ONE = "a photo of a {}."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model whose answers depend on everything that a protocol decides."""
    torch.manual_seed(0)
    model = open_clip.CLIP(**SIZES)
    with torch.no_grad():
        nn.init.normal_(model.text_projection, std=0.5)
        for weight in (*model.visual.transformer.parameters(), *model.transformer.parameters()):
            if weight.ndim > 1:
                weight.mul_(4.0)
    folder = tmp_path_factory.mktemp("hub") / "tiny-clip"
    folder.mkdir()
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": SIZES, "preprocess_cfg": {}}))
    return folder


@pytest.fixture(scope="module")
def workspace(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    space = tmp_path_factory.mktemp("protocol") / "workspace"
    small = ("--set", "device=cpu", "--set", "data.train_pairs=64", "--set", "data.heldout_pairs=24")
    assert main(["open", str(folder), "--name", "tiny", *small, "--workspace", str(space)]) == 0
    return Workspace(space)


def explained(workspace: Workspace, **question: Any) -> TaskRecord:
    done, left_out = evaluate_runs(
        ModelCache(workspace), Evaluate(runs=(1,), explain=True, **question), lambda _share, _note: None
    )
    assert not left_out
    return next(one.record for one in done if one.record.task.endswith("_protocol"))


def pictures(paths: list[str]) -> list[Image.Image]:
    """Return images of members of tars by their names alone."""
    read: list[Image.Image] = []
    with contextlib.ExitStack() as opened:
        tars = {tar: opened.enter_context(tarfile.open(tar)) for tar in {path.partition("::")[0] for path in paths}}
        for path in paths:
            tar, _, member = path.partition("::")
            content = tars[tar].extractfile(member.rpartition("::")[2])
            assert content is not None
            read.append(Image.open(io.BytesIO(content.read())).convert("RGB"))
    return read


@contextlib.contextmanager
def quick(model: nn.Module):
    """Exchange GELU for QuickGELU in every block."""
    blocks = [*model.visual.transformer.resblocks, *model.transformer.resblocks]
    for block in blocks:
        block.mlp.gelu = QuickGELU()
    yield
    for block in blocks:
        block.mlp.gelu = nn.GELU()


@torch.no_grad()
def directly(
    folder: Path, images: list[Image.Image], names: list[str], templates: list[str], changed: str
) -> np.ndarray:
    """Return open_clip's answers with one decision changed."""
    model, _ = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    model.eval()
    transform = open_clip.image_transform(
        40,
        is_train=False,
        resize_mode="squash" if changed == "resize" else "shortest",
        interpolation="bilinear" if changed == "interpolation" else "bicubic",
    )
    tokenize = open_clip.SimpleTokenizer(context_length=12 if changed == "context" else 24)
    low = torch.autocast("cpu", torch.bfloat16, enabled=changed == "precision")
    with quick(model) if changed == "activation" else contextlib.nullcontext(), low:
        rows = model.encode_image(torch.stack([transform(image) for image in images])).float()
        rows = nn.functional.normalize(rows, dim=1)
        images_of = rows
        weights = []
        for name in names:
            tokens = tokenize([template.format(name) for template in ([ONE] if changed == "templates" else templates)])
            tokens = nn.functional.pad(tokens, (0, 24 - tokens.shape[1]))
            if changed == "tokenizer":
                for row in tokens:
                    row[int(row.argmax()) :] = 49407
            rows = model.encode_text(tokens).float()
            rows = rows if changed == "averaging" else nn.functional.normalize(rows, dim=1)
            weights.append(nn.functional.normalize(rows.mean(0), dim=0))
    return (images_of @ torch.stack(weights).T).argmax(1).numpy()


@pytest.mark.shared
@few_plain(1, "name", ["clothing-cc0", "cifar10"])
def test_each_change_is_what_open_clip_says(
    workspace: Workspace, folder: Path, shared_data: Path, tmp_path: Path, name: str
):
    data = tmp_path / name
    data.mkdir()
    for part in ("test", "classnames.txt", "zeroshot_classification_templates.txt"):
        (data / part).symlink_to(shared_data / name / part)
    if name == "clothing-cc0":
        (data / "train").symlink_to(shared_data / name / "train")
    record = explained(workspace, data=str(data), tasks=("zero_shot",), most=80)
    details, arrays = record.details["measures"]["zero_shot"], record.arrays
    names = (data / "classnames.txt").read_text().splitlines()
    templates = (data / "zeroshot_classification_templates.txt").read_text().replace("{c}", "{}").splitlines()
    label, images = arrays["label"], pictures(arrays["path"].tolist())
    published = directly(folder, images, names, templates, "") == label
    assert np.array_equal(arrays["published"], published)
    assert details["published"] == pytest.approx(published.mean())
    moved = 0
    for factor in ("averaging", "templates", "context", "tokenizer", "resize", "interpolation", "activation"):
        wanted = directly(folder, images, names, templates, factor) == label
        # A float32 sum in another order may turn one answer that ties.
        assert (arrays[f"alone_{factor}"] != wanted).sum() <= 1, factor
        assert details["alone"][factor]["share"] == pytest.approx(arrays[f"alone_{factor}"].mean())
        moved += int((wanted != published).sum())
    assert moved > 5, "the model answers otherwise under other protocols"
    low = directly(folder, images, names, templates, "precision") == label
    assert (arrays["alone_precision"] != low).mean() <= 0.05
    recalls = [published[label == one].mean() for one in np.unique(label)]
    assert details["alone"]["mean"]["share"] == pytest.approx(np.mean(recalls))
    # In order: the last is every deviation at once, and each begins where the one before it ended.
    before = details["published"]
    for factor in details["factors"]:
        if cost := details["in_order"].get(factor["name"]):
            assert cost["difference"] == pytest.approx(cost["share"] - before)
            before = cost["share"]
    assert before == pytest.approx(details["changed"])
    assert ("split" in details["alone"]) == (name == "clothing-cc0")


@torch.no_grad()
def test_retrieval_counts_captions_as_the_protocol_says(workspace: Workspace, folder: Path, tmp_path: Path):
    rng = np.random.default_rng(0)
    rows = []
    for number in range(30):
        color = tuple(int(part) for part in rng.integers(0, 255, 3))
        Image.new("RGB", (48, 40), color).save(tmp_path / f"{number:02d}.png")
        rows += [(f"{number:02d}.png", f"picture {rng.integers(0, 40)} of {text}") for text in ("a", "b")]
    with (tmp_path / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("image", "caption"), *rows])
    record = explained(workspace, data=str(tmp_path / "table.csv"), tasks=("retrieval",))
    model, transform = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    paths, captions = record.arrays["path"].tolist(), dict_of(tmp_path)
    files = list(dict.fromkeys(paths))
    texts = [(path, text) for path in files for text in captions[Path(path).name]]
    images = model.eval().encode_image(torch.stack([transform(Image.open(path)) for path in files]), normalize=True)
    tokens = open_clip.SimpleTokenizer(context_length=24)([text for _, text in texts])
    cosines = (images.double() @ model.encode_text(tokens, normalize=True).double().T).numpy()
    own = np.array([[path == of for of, _ in texts] for path in files])

    def first(scores: np.ndarray, right: np.ndarray) -> float:
        best = np.where(right, scores, -9).max(1)
        return float((best > np.where(right, -9, scores).max(1) + 1e-6).mean())

    measures = record.details["measures"]
    assert measures["image_to_text"]["published"] == pytest.approx(first(cosines, own), abs=0.04)
    assert measures["text_to_image"]["published"] == pytest.approx(first(cosines.T, own.T), abs=0.02)
    alone = [next(i for i, (path, _) in enumerate(texts) if path == file) for file in files]
    wanted = first(cosines[:, alone], own[:, alone])
    assert measures["image_to_text"]["alone"]["captions"]["share"] == pytest.approx(wanted, abs=0.04)
    half = len(files) // 2
    seen = [i for i, (path, _) in enumerate(texts) if path in files[:half]]
    wanted = first(cosines[:half, seen], own[:half, seen])
    assert measures["image_to_text"]["alone"]["gallery"]["share"] == pytest.approx(wanted, abs=0.07)


def dict_of(folder: Path) -> dict[str, list[str]]:
    captions: dict[str, list[str]] = {}
    with (folder / "table.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            captions.setdefault(row["image"], []).append(row["caption"])
    return captions


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    for name, color in (("red", (220, 30, 30)), ("green", (30, 200, 40)), ("blue", (30, 40, 220))):
        (tmp_path / "shapes" / name).mkdir(parents=True)
        for number in range(6):
            shade = tuple(min(255, part + 7 * number) for part in color)
            Image.new("RGB", (40, 40), shade).save(tmp_path / "shapes" / name / f"{number}.png")
    return tmp_path / "shapes"


@torch.no_grad()
def test_sentences_of_single_classes_are_a_suite(workspace: Workspace, folder: Path, shapes: Path, tmp_path: Path):
    prompts = {"red": ["a red sheet", "like blood", "warm"], "green": ["grass"], "blue": ["the sea", "a clear sky"]}
    file = tmp_path / "cupl.json"
    file.write_text(json.dumps(prompts))
    question = Evaluate(runs=(1,), data=str(shapes), tasks=("zero_shot",), suite=str(file))
    done, _ = evaluate_runs(ModelCache(workspace), question, lambda _share, _note: None)
    record = done[0].record
    model, transform = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokenize, weights = open_clip.SimpleTokenizer(context_length=24), []
    for sentences in prompts.values():
        mean = model.eval().encode_text(tokenize(sentences), normalize=True).mean(0)
        weights.append(nn.functional.normalize(mean, dim=0))
    images = [model.encode_image(transform(Image.open(p))[None], normalize=True)[0] for p in record.arrays["path"]]
    predicted = (torch.stack(images) @ torch.stack(weights).T).argmax(1).numpy()
    assert np.array_equal(record.arrays["predicted"], predicted)
    assert record.question.protocol == "by 6 sentences of single classes"
    file.write_text(json.dumps({"red": ["a red sheet"], "green": "grass"}))
    assert main(["evaluate", "1", "--data", str(shapes), "--suite", str(file), "--workspace",
                 str(workspace.folder)]) == 2  # fmt: skip


def test_names_of_folders_are_the_raw_ones_and_what_cannot_be_changed_says_why(workspace: Workspace, tmp_path: Path):
    for code, color in (("AE", 10), ("DE", 120), ("FR", 230)):
        (tmp_path / "country211" / "test" / code).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (40, 40), (color, number * 40, 90)).save(
                tmp_path / "country211" / "test" / code / f"{number}.png"
            )
    record = explained(workspace, data=str(tmp_path / "country211"), tasks=("zero_shot",), suite="country211")
    details = record.details["measures"]["zero_shot"]
    reasons = {factor["name"]: factor["why_not"] for factor in details["factors"]}
    assert reasons["names"] == ""
    assert {"names", "mean"} <= {*details["alone"]}
    assert main(["export", "protocol", "--runs", "1", "--out", str(tmp_path / "p.csv"), str(tmp_path / "p.svg"),
                 "--workspace", str(workspace.folder)]) == 0  # fmt: skip
