"""Blocks that are computed again: the same weights to the bit, and less that is kept for the backward pass."""

from dataclasses import replace

import numpy as np
import torch

from tests.trainer.training.conftest import TINY
from trainer import config
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.training.session import TrainingSession

VIT = replace(TINY.model, image_tower="vit", image_width=32, image_layers=3, text_layers=3)


def session(recompute: bool, objective: config.Objective, micro: int = 0) -> TrainingSession:
    pixels = np.random.default_rng(0).integers(0, 256, (48, 32, 32, 3), np.uint8)
    captions = [f"picture {at % 7} of {at % 5}" for at in range(48)]
    pairs = Pairs("random", "train", pixels, captions, [""] * 48, [""] * 48, {}, "")
    choice = replace(TINY.optimizer, batch_size=16, epochs=1, recompute=recompute, micro_batch=micro)
    run = replace(TINY, model=VIT, objective=objective, optimizer=choice)
    return TrainingSession(run, pairs, train_tokenizer(captions, 256), torch.device("cpu"))


def kept_bytes(training: TrainingSession) -> int:
    """Return the bytes that the forward pass of a batch keeps for the backward pass, parameters apart."""
    own = {p.data_ptr() for module in training.modules.values() for p in module.parameters()}
    found: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.data_ptr() not in own:
            found[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    batch = training.batch()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        image, text = training.towers.encode_image(batch.images), training.towers.encode_text(batch.tokens)
    assert image.requires_grad
    assert text.requires_grad
    return sum(found.values())


def test_the_weights_are_the_same_to_the_bit_and_less_is_kept():
    for objective, micro in ((config.Cloob(), 0), (config.Clip(), 8)):
        plain, again = (session(on, objective, micro) for on in (False, True))
        losses = [[training.update().loss for _ in range(3)] for training in (plain, again)]
        assert losses[0] == losses[1]
        for name, module in plain.modules.items():
            for one, other in zip(module.state_dict().values(), again.modules[name].state_dict().values(), strict=True):
                assert torch.equal(one, other)
    assert kept_bytes(session(True, config.Clip())) < 0.5 * kept_bytes(session(False, config.Clip()))


def test_copies_of_the_towers_recompute_too():
    ours = session(True, config.Byol())
    assert ours.update().made
    kinds = {type(m).__name__ for module in ours.modules.values() for m in module.modules()}
    assert "RecomputedBlock" in kinds
    assert "ResidualAttentionBlock" not in kinds
