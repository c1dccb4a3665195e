"""Folders that transformers saved, and a run's own exports, open with the embeddings that their library computes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor

from tests.lazily import lazily
from tests.nightly import few_plain
from trainer.images import open_image
from trainer.inference.transformers_layout import clip_config
from trainer.models import build, file_preprocessing_of
from trainer.pretrained import PretrainedError, ResolvedModel, find, model_of, start_from
from trainer.pretrained.transformers_models import _TEXT, _VISION

transformers = lazily("transformers", reason="the extra [hf] is not installed")

pytestmark = pytest.mark.slow

TEXT: dict[str, Any] = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 20,
    "max_position_embeddings": 9, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
VISION: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 50, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16,
    "patch_size": 8,
}  # fmt: skip
WORDS = [
    *("<pad>", "<s>", "</s>", "<unk>"),
    *("a", "the", "red", "blue", "green", "circle", "square", "star", "above", "below", "of", "left", "right"),
]
SENTENCES = ["a Red circle", "the green star above a blue square", "star " * 12]
CLIP = ("CLIPModel", "CLIPConfig", {"projection_dim": 12})
SIGLIP = ("SiglipModel", "SiglipConfig", {})
SIGLIP2 = ("Siglip2Model", "Siglip2Config", {})


def saved(
    folder: Path,
    kind: tuple[str, str, dict[str, Any]],
    text: dict[str, Any] | None = None,
    vision: dict[str, Any] | None = None,
) -> Any:
    """Save a model with a tokenizer of words, which pads in the id 0, and return it."""
    name, configuration, more = kind
    text, vision = TEXT | (text or {}), VISION | (vision or {})
    if name == "Siglip2Model":
        vision = {key: value for key, value in vision.items() if key != "image_size"} | {"num_patches": 4}
    torch.manual_seed(0)
    sizes = getattr(transformers, configuration)(text_config=text, vision_config=vision, **more)
    model = getattr(transformers, name)(sizes).eval()
    for parameter in model.parameters():  # the library starts biases and the scale of norms at 0 and 1
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    if name == "Siglip2Model":  # the library makes its own kind for it, of byte pairs
        letters = {letter: place for place, letter in enumerate(("<pad>", "<eos>", "<bos>", "<unk>", *"▁aredstbluqg"))}
        transformers.Siglip2Tokenizer(vocab=letters, merges=[]).save_pretrained(folder)
        return model
    pairs = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<unk>"))
    pairs.normalizer = normalizers.Lowercase()
    pairs.pre_tokenizer = pre_tokenizers.Whitespace()
    pairs.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=pairs, pad_token="<pad>", eos_token="</s>")
    fast.save_pretrained(folder)
    return model


def opened(folder: Path, cache: Path) -> tuple[ResolvedModel, Any]:
    found = find(model_of(str(folder)), cache=cache, progress=lambda *_: None)
    towers = build(found.blueprint, vocabulary=found.tokenizer.size).eval()
    start_from(found, towers)
    return found, towers


def tokens_of(folder: Path, length: int) -> Tensor:
    fast = transformers.AutoTokenizer.from_pretrained(folder)
    named = {"padding": "max_length", "max_length": length, "truncation": True, "return_tensors": "pt"}
    return fast(SENTENCES, **named).input_ids


@torch.inference_mode()
@pytest.mark.parametrize(
    ("text", "vision"),
    [
        ({}, {}),
        ({"hidden_act": "gelu"}, {"hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-3}),
        # An end that is not the largest id, so that transformers looks for the id and open_clip must, too.
        ({"eos_token_id": 5, "layer_norm_eps": 1e-2}, {}),
    ],
)
@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_clip_has_the_embeddings_of_transformers(tmp_path: Path, text, vision, suffix) -> None:
    folder = tmp_path / "clip"
    model = saved(folder, CLIP, text, vision)
    if suffix == ".bin":
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    found, towers = opened(folder, tmp_path)
    pixels, tokens = torch.randn(3, 3, 16, 16), tokens_of(folder, 9)
    assert torch.equal(found.tokenizer.encode(SENTENCES, 9), tokens)
    if "eos_token_id" in text:
        tokens[:, 4] = text["eos_token_id"]
    theirs = model(pixel_values=pixels, input_ids=tokens)
    assert (towers.encode_image(pixels) - theirs.image_embeds).abs().max() < 1e-5
    assert (towers.encode_text(tokens) - theirs.text_embeds).abs().max() < 1e-5
    assert found.learned.inv_tau == pytest.approx(model.logit_scale.exp().item())
    assert (found.learned.kind, found.learned.bias) == ("clip", None)


def test_an_export_states_the_words_of_its_table_not_of_its_tokenizer(tmp_path: Path) -> None:
    saved(tmp_path / "clip", CLIP)
    found, towers = opened(tmp_path / "clip", tmp_path)
    sizes = clip_config(towers.visual, towers.text, end=2, scale=0.0)
    assert sizes["text_config"]["vocab_size"] == TEXT["vocab_size"] > found.tokenizer.size


@torch.inference_mode()
@few_plain(1, "kind", [SIGLIP, SIGLIP2], ids=["siglip", "siglip2"])
def test_siglip_has_the_embeddings_scale_and_bias_of_transformers(tmp_path: Path, kind) -> None:
    folder = tmp_path / "siglip"
    model = saved(folder, kind, {"projection_size": 32})
    found, towers = opened(folder, tmp_path)
    pixels, tokens = torch.randn(3, 3, 16, 16), tokens_of(folder, 9)
    assert torch.equal(found.tokenizer.encode(SENTENCES, 9), tokens)
    # Towers are given pixels in CLIP's colors and turn them into their own.
    given = {"pixel_values": pixels if towers.colors is None else towers.colors(pixels)}
    if kind is SIGLIP2:
        processor = transformers.Siglip2ImageProcessor(
            patch_size=8, max_num_patches=4, do_resize=False, do_rescale=False, do_normalize=False
        )
        given = dict(processor([one.numpy() for one in given["pixel_values"]], return_tensors="pt"))
    theirs = model(input_ids=tokens, **given)
    assert (towers.encode_image(pixels) - theirs.image_embeds).abs().max() < 1e-5
    assert (towers.encode_text(tokens) - theirs.text_embeds).abs().max() < 1e-5
    assert found.learned.kind == "siglip"
    assert found.learned.inv_tau == pytest.approx(model.logit_scale.exp().item())
    assert found.learned.bias == pytest.approx(model.logit_bias.item())
    assert ("every picture becomes a square" in found.origin) == (kind is SIGLIP2)


PROCESSORS = [
    {"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 16}, "image_mean": [0.2] * 3},
    {"size": 16, "crop_size": 16, "resample": 2, "do_normalize": False},
    {"size": {"height": 16, "width": 16}, "do_center_crop": False, "resample": 1, "rescale_factor": 1 / 127.5},
]


@pytest.mark.parametrize("told", PROCESSORS)
def test_pictures_are_read_as_its_image_processor_reads_them(tmp_path: Path, told) -> None:
    folder = tmp_path / "clip"
    saved(folder, CLIP)
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": "CLIPImageProcessor"} | told))
    found, _ = opened(folder, tmp_path)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 26, 3), np.uint8)).save(tmp_path / "one.png")
    image = open_image(tmp_path / "one.png")
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    theirs = processor(image, return_tensors="pt").pixel_values[0]
    reads = file_preprocessing_of(found.blueprint)
    ours = torch.from_numpy(reads.pixels(image)).permute(2, 0, 1) / 255
    ours = (ours - torch.tensor(reads.mean).view(3, 1, 1)) / torch.tensor(reads.std).view(3, 1, 1)
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() < 1e-5
    assert "assumed" not in found.origin


def test_what_no_file_tells_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    saved(folder, CLIP)
    assert "preprocessor_config.json is missing: the library's default is assumed" in opened(folder, tmp_path)[0].origin
    assert {key: getattr(transformers.CLIPTextConfig(), key) for key in _TEXT} == _TEXT
    assert {key: getattr(transformers.CLIPVisionConfig(), key) for key in _VISION} == _VISION


def test_parts_of_weights_and_a_file_inside_of_the_folder_open_alike(tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    model = saved(folder, CLIP)
    whole = opened(folder, tmp_path)[1].state_dict()
    lone = opened(folder / "model.safetensors", tmp_path)[1].state_dict()
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    parts = opened(folder, tmp_path)[1].state_dict()
    assert all(torch.equal(value, lone[name]) and torch.equal(value, parts[name]) for name, value in whole.items())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"vision_config": {"hidden_act": "silu"}}, "has the activations"),
        ({"vision_config": {"num_hidden_layers": 10**7}}, "out of range"),
        ({"vision_config": {"image_size": 24}}, "do not belong together"),
        ({"text_config": {"vocab_size": "many"}}, "cannot be followed: invalid literal"),
        ({"model_type": "bert"}, "holds no model"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused_in_words(tmp_path: Path, change, sentence) -> None:
    folder = tmp_path / "clip"
    saved(folder, CLIP)
    (folder / "preprocessor_config.json").write_text(json.dumps({"crop_size": 16, "size": 16}))
    values = json.loads((folder / "config.json").read_text())
    for name, value in change.items():
        values[name] = values[name] | value if isinstance(value, dict) else value
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(PretrainedError, match=sentence):
        opened(folder, tmp_path)
