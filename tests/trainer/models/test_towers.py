import numpy as np
import pytest
import torch

from trainer import config
from trainer.data.tokenizer import train_tokenizer
from trainer.inference.batches import embed_images, embed_tokens
from trainer.models import build, has_batch_norm

CAPTIONS = ["a red ring above a blue star on grass", "a green moon on water"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(CAPTIONS, 400)


def towers(tokenizer, **changes):
    torch.manual_seed(0)
    plain = {"image_size": 32, "image_width": 8, "text_width": 32, "text_layers": 1, "text_heads": 2, "embed_dim": 24}
    return build(config.TinyTowers(**(plain | changes)), vocabulary=tokenizer.size)


@pytest.mark.parametrize("changes", [{}, {"image_tower": "vit", "image_width": 32, "image_layers": 2}])
def test_both_towers_give_unit_rows_of_the_shared_width(tokenizer, changes):
    model = towers(tokenizer, **changes).eval()
    images = np.random.default_rng(0).integers(0, 255, (5, 32, 32, 3), dtype=np.uint8)
    image = embed_images(model, images, torch.device("cpu"))
    text = embed_tokens(model, tokenizer.encode(CAPTIONS, 24), torch.device("cpu"))
    assert image.shape == (5, 24)
    assert text.shape == (2, 24)
    assert image.dtype == text.dtype == np.float32
    assert np.linalg.norm(image, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(text, axis=1) == pytest.approx(1, abs=1e-5)
    assert np.abs(text[0] - text[1]).max() > 1e-3


def test_an_embedding_does_not_depend_on_its_batch(tokenizer):
    model = towers(tokenizer).eval()
    images = np.random.default_rng(0).integers(0, 255, (6, 32, 32, 3), dtype=np.uint8)
    together = embed_images(model, images, torch.device("cpu"))
    alone = np.concatenate([embed_images(model, images[i : i + 1], torch.device("cpu")) for i in range(6)])
    assert together == pytest.approx(alone, abs=1e-5)


def test_what_stands_behind_the_end_of_a_text_changes_nothing(tokenizer):
    """The text tower is causal and read at the end token."""
    model = towers(tokenizer).eval()
    tokens = tokenizer.encode(CAPTIONS, 24)
    other = tokens.clone()
    other[tokens == 0] = 5
    assert torch.allclose(model.encode_text(tokens), model.encode_text(other), atol=1e-6)


def test_two_different_captions_cut_at_the_end_differ(tokenizer):
    """CLOOB's own tokenizer drops the end token of long captions, which gives all the same embedding."""
    model = towers(tokenizer, context_length=6).eval()
    tokens = tokenizer.encode(["a red ring above a blue star", "a green moon on water and grass"], 6)
    left, right = model.encode_text(tokens)
    assert (left - right).abs().max() > 1e-3


def test_the_seed_decides_the_weights(tokenizer):
    one, two = towers(tokenizer), towers(tokenizer)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_batch_norm_is_found(tokenizer):
    assert has_batch_norm(towers(tokenizer))
    assert not has_batch_norm(towers(tokenizer, image_tower="vit", image_width=32))


def test_a_projection_of_two_layers_is_convirts(tokenizer):
    """W2 ReLU(W1 h), in float64: W1 h is what the same tower answers with one layer."""
    model, plain = towers(tokenizer, projection="mlp").eval(), towers(tokenizer).eval()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if "head" not in name})
    images, tokens = torch.randn(3, 3, 32, 32), tokenizer.encode(CAPTIONS, 24)
    with torch.inference_mode():
        found = model.encode_image(images).numpy(), model.encode_text(tokens).numpy()
        before = plain.features(images).double().numpy(), plain.text(tokens).double().numpy()
    assert torch.equal(model.features(images), model.image_head(plain.features(images)))
    for rows, first, head in zip(found, before, (model.image_head, model.text_head), strict=True):
        weight, bias = (getattr(head[1], name).detach().double().numpy() for name in ("weight", "bias"))
        expected = (
            np.array([[sum(w * max(v, 0) for w, v in zip(line, row)) for line in weight] for row in first]) + bias
        )
        expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
        assert rows == pytest.approx(expected, abs=1e-5)
    assert not torch.equal(model.image_head[1].weight, model.text_head[1].weight)


def test_one_layer_is_what_it_was(tokenizer):
    """Checkpoints of runs from before there was a choice have these names."""
    assert {name.partition(".")[0] for name in towers(tokenizer).state_dict()} == {"visual", "text"}
