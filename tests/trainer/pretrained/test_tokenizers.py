"""The tokenizers of published models: their ids, their end tokens, and saving and loading."""

import json

import open_clip
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from trainer.data.pairs import DataError
from trainer.data.tokenizers import ClipTokenizer, HubTokenizer, read_tokenizer
from trainer.models import Blueprint
from trainer.pretrained.tokenizers import tokenizer_for

TEXTS = ["A red ring &amp; a star", "", "ring " * 100, "日本 ☃"]
WORDS = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "a": 3, "red": 4, "ring": 5, "<pad>": 6}


@pytest.fixture
def pairs() -> Tokenizer:
    made = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    return made


def test_clips_tokenizer_is_that_of_open_clip_and_keeps_the_end():
    ours, theirs = ClipTokenizer(), open_clip.get_tokenizer("RN50")
    rows = ours.encode(TEXTS, 77)
    assert rows.equal(theirs(TEXTS))
    assert (rows.max(dim=1).values == ours.eot).all()
    assert rows[2, -1] == ours.eot == ours.size - 1
    assert ours.decode(rows[0].tolist()) == "a red ring & a star"
    assert read_tokenizer(ours.to_json()).encode(TEXTS, 20).equal(ours.encode(TEXTS, 20))


def test_a_tokenizer_of_the_hub_keeps_its_own_ends(pairs):
    ours = HubTokenizer(pairs, padding=6)
    rows = ours.encode(["a red ring", "ring " * 9], 5)
    assert rows.tolist() == [[0, 3, 4, 5, 1], [0, 5, 5, 5, 1]]
    assert ours.encode(["a"], 5).tolist() == [[0, 3, 1, 6, 6]]
    again = read_tokenizer(ours.to_json())
    assert torch.equal(again.encode(["a red ring"], 7), ours.encode(["a red ring"], 7))
    with pytest.raises(DataError, match="tokenizer cannot be read"):
        read_tokenizer('{"tokenizer": "hub", "cleaning": "lower"}')


def test_a_models_own_tokenizer_lies_in_its_folder(pairs, tmp_path, quiet, sizes):
    pairs.save(str(tmp_path / "tokenizer.json"))
    own = sizes | {
        "text_cfg": sizes["text_cfg"] | {"hf_tokenizer_name": "far/away", "tokenizer_kwargs": {"clean": "lower"}}
    }
    places = {"folder": tmp_path, "repository": "", "cache": tmp_path, "progress": quiet}
    found = tokenizer_for(Blueprint("open_clip", own), "", **places)
    assert found.encode(["A RED ring"], 6).tolist() == [[0, 3, 4, 5, 1, 6]]
    assert json.loads(found.to_json())["cleaning"] == "lower"
    assert tokenizer_for(Blueprint("open_clip", own), "clip", **places).size == 49_408
