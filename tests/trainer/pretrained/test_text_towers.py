"""Models with a Hugging Face text tower, and tokenizers in folders."""

import copy
import importlib.util
import json
import os
from pathlib import Path

import open_clip
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from trainer import config, pretrained
from trainer.models import Blueprint, ModelError, build, published
from trainer.pretrained.tokenizers import tokenizer_by_name

WORDS = ["<pad>", "[CLS]", "[SEP]", "[UNK]", "a", "red", "ring", "star", "photo"]
TEXTS = ["a red ring", "a photo a star"]

with_library = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="the extra hf (transformers) is not installed"
)


def bert() -> dict:
    return {
        "model_type": "bert",
        "vocab_size": len(WORDS),
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 40,
        "pad_token_id": 0,
        "auto_map": {"AutoModel": "evil.Model"},
    }


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return made


@pytest.fixture
def hub_text(sizes, tmp_path: Path) -> Path:
    """Return a hub model whose text tower is a tiny BERT, with weights created by open_clip."""
    folder = tmp_path / "bert-clip"
    (folder / "text").mkdir(parents=True)
    (folder / "text" / "config.json").write_text(json.dumps(bert()))
    text = {"hf_model_name": "text", "hf_tokenizer_name": "text", "hf_proj_type": "mlp", "context_length": 12}
    made = sizes | {"text_cfg": text}
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": made, "preprocess_cfg": {}}))
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def theirs(folder: Path, sizes: dict) -> "open_clip.CustomTextCLIP":
    """Return the same model as built by open_clip."""
    (folder / "plain").mkdir(exist_ok=True)
    plain = {key: value for key, value in bert().items() if key != "auto_map"}
    (folder / "plain" / "config.json").write_text(json.dumps(plain))
    text = {"hf_model_name": str(folder / "plain"), "hf_model_pretrained": False, "hf_proj_type": "mlp"}
    torch.manual_seed(5)
    model = open_clip.CustomTextCLIP(sizes["embed_dim"], copy.deepcopy(sizes["vision_cfg"]), text)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    return model.eval()


@with_library
@torch.inference_mode()
def test_a_text_tower_of_hugging_face_answers_as_in_open_clip(hub_text, sizes, tmp_path, quiet, monkeypatch) -> None:
    model = theirs(hub_text, sizes)
    found = pretrained.find(config.OpenClip(name=f"local-dir:{hub_text}"), cache=tmp_path, progress=quiet)
    assert (found.blueprint.vocabulary, found.tokenizer.size) == (len(WORDS), len(WORDS))
    # The run's folder alone is enough from now on.
    blueprint = Blueprint.from_json(found.blueprint.to_json())
    for file in hub_text.rglob("*.json"):
        file.unlink()
    towers = build(blueprint, vocabulary=found.tokenizer.size)
    pretrained.start_from(found, towers)
    tokens = found.tokenizer.encode(TEXTS, blueprint.context_length)
    assert tokens[0, :6].tolist() == [1, 4, 5, 6, 2, 0]
    assert torch.allclose(towers.eval().encode_text(tokens), model.encode_text(tokens, normalize=True), atol=1e-5)
    towers.freeze("all but projections")
    assert {name.split(".")[0] for name, one in towers.text.named_parameters() if one.requires_grad} == {"proj"}


@with_library
def test_such_a_tower_can_be_trained_from_random_weights(hub_text, sizes, tmp_path, quiet, monkeypatch) -> None:
    made = json.loads((hub_text / "open_clip_config.json").read_text())["model_cfg"]
    made["text_cfg"] |= {"hf_model_name": str(hub_text / "text"), "hf_tokenizer_name": str(hub_text)}
    monkeypatch.setattr(open_clip, "get_model_config", lambda name: copy.deepcopy(made) if name == "tiny" else None)
    found = pretrained.find(config.OpenClip(name="tiny"), cache=tmp_path, progress=quiet)
    assert found.weights is None
    towers = build(found.blueprint, vocabulary=found.tokenizer.size)
    tokens = found.tokenizer.encode(TEXTS, 12)
    towers.encode_text(tokens).sum().backward()
    assert all(one.grad is not None for name, one in towers.text.named_parameters() if "proj" in name)


def test_without_the_library_there_is_a_sentence(hub_text, sizes, tmp_path, quiet, monkeypatch) -> None:
    (hub_text / "open_clip_model.safetensors").write_bytes(b"")
    save_file({"visual.proj": torch.zeros(2, 2)}, hub_text / "open_clip_model.safetensors")
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else real(name))
    with pytest.raises(pretrained.PretrainedError, match="uv sync --extra hf"):
        pretrained.find(config.OpenClip(name=f"local-dir:{hub_text}"), cache=tmp_path, progress=quiet)
    monkeypatch.setattr("open_clip.hf_model.transformers", None)
    text = {"hf_model_name": "text", published.HF_SIZES: bert(), "hf_proj_type": "mlp"}
    with pytest.raises(ModelError, match="uv sync --extra hf"):
        published.text_tower(Blueprint("open_clip", sizes | {"text_cfg": text}))


@with_library
@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"model_type": 3}'])
def test_settings_that_are_none_are_named(content, hub_text, sizes, tmp_path, quiet) -> None:
    theirs(hub_text, sizes)
    (hub_text / "text" / "config.json").write_text(content)
    with pytest.raises(pretrained.PretrainedError, match="tells no sizes of a text tower"):
        pretrained.find(config.OpenClip(name=f"local-dir:{hub_text}"), cache=tmp_path, progress=quiet)


@with_library
def test_a_text_tower_of_the_hub_says_that_the_hub_cannot_be_reached(hub_text, sizes, tmp_path, quiet) -> None:
    theirs(hub_text, sizes)
    (hub_text / "text").rename(hub_text / "moved")
    with pytest.raises(pretrained.PretrainedError, match="cannot be reached"):
        pretrained.find(config.OpenClip(name=f"local-dir:{hub_text}"), cache=tmp_path, progress=quiet)


@with_library
def test_a_type_that_nobody_knows_is_refused(hub_text, sizes, tmp_path, quiet) -> None:
    theirs(hub_text, sizes)
    (hub_text / "text" / "config.json").write_text(json.dumps(bert() | {"model_type": "unheard-of"}))
    with pytest.raises(ModelError, match="cannot be built from its sizes"):
        pretrained.find(config.OpenClip(name=f"local-dir:{hub_text}"), cache=tmp_path, progress=quiet)


def test_a_tokenizer_in_a_folder(tmp_path, quiet) -> None:
    tokenizer().save(str(tmp_path / "tokenizer.json"))
    for name in (str(tmp_path), str(tmp_path / "tokenizer.json")):
        found = tokenizer_by_name(name, cache=tmp_path, progress=quiet)
        assert "a red ring" in found.decode(found.encode(["a red ring"], 8)[0].tolist())
    os.mkdir(tmp_path / "empty")
    with pytest.raises(pretrained.PretrainedError, match="There is no tokenizer"):
        tokenizer_by_name(str(tmp_path / "empty"), cache=tmp_path, progress=quiet)


@with_library
def test_a_word_list_of_an_older_kind_is_read_by_the_library(tmp_path, quiet, monkeypatch) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS[4:]]))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    found = tokenizer_by_name(str(tmp_path), cache=tmp_path, progress=quiet)
    assert "red ring" in found.decode(found.encode(["a red ring"], 8)[0].tolist())
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "transformers" else real(name))
    with pytest.raises(pretrained.PretrainedError, match="uv sync --extra hf"):
        tokenizer_by_name(str(tmp_path), cache=tmp_path, progress=quiet)
