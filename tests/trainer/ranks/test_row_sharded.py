"""Losses by rows over ranks: loss and gradients of the dense form, in float64."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from tests.trainer.losses.repeated_pairs import repeated_pairs
from trainer import config
from trainer.analysis.distinct import matching, numbered
from trainer.methods import Batch, build
from trainer.methods import row_sharded as module
from trainer.methods.row_sharded import row_sharded, shards_rows

N, D = 24, 8
CASES = {
    "clip": config.Clip(),
    "infoloob": config.InfoLoobPair(),
    "cloob": config.Cloob(),
    "half cloob": config.Cloob(retrieval_share=0.5),
    "residual cloob": config.Cloob(residual=True),
    "cloob without retrieval": config.Cloob(retrieval_share=0.0),
}


def unit_pairs():
    generator = torch.Generator().manual_seed(0)
    image, text = (normalize(torch.randn(N, D, dtype=torch.float64, generator=generator), dim=1) for _ in range(2))
    return image, text


@pytest.mark.parametrize("masked", [False, True], ids=["", "masked"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_are_those_of_the_dense_form(by_threads, name, ranks, masked):
    image, text = unit_pairs()
    pictures, captions = repeated_pairs(N)

    def made():
        method = build(CASES[name]).double()
        method.masks = masked
        method.matching = matching(numbered(captions), np.array(pictures)) if masked else None
        return method

    dense, leaves = made(), (image.clone().requires_grad_(), text.clone().requires_grad_())
    loss = dense.compare(leaves, Batch(None, None, torch.arange(N)))
    loss.backward()

    def act(shared):
        own = shared.own(N)
        whole = Batch(None, None, torch.arange(N))
        part = Batch(None, None, torch.arange(N)[own], whole=whole, start=own.start)
        method = made()
        told, gradients = row_sharded(method, (image[own], text[own]), part, shared)
        return told, gradients, [p.grad for p in method.parameters()]

    results = by_threads(ranks, act)
    for told, *_ in results:
        assert abs(told - loss) < 1e-12
    for place, leaf in enumerate(leaves):
        found = torch.cat([gradients[place] for _, gradients, _ in results])
        assert (found - leaf.grad).abs().max() < 1e-12
        assert leaf.grad.abs().max() > 1e-3
    for number, parameter in enumerate(dense.parameters()):
        assert abs(sum(learned[number] for *_, learned in results) - parameter.grad) < 1e-12


def test_pairs_of_one_caption_have_nothing_to_learn(by_threads):
    image, text = unit_pairs()

    def act(shared):
        own = shared.own(N)
        method = build(config.Cloob()).double()
        method.masks, method.matching = True, matching(np.zeros(N, np.int64))
        part = Batch(None, None, torch.arange(N)[own], whole=Batch(None, None, torch.arange(N)), start=own.start)
        return row_sharded(method, (image[own], text[own]), part, shared)

    for loss, gradients in by_threads(2, act):
        assert abs(loss) < 1e-12
        assert all(gradient.abs().max() < 1e-12 for gradient in gradients)


def test_large_batches_of_three_objectives_are_sharded():
    assert [shards_rows(build(CASES[name]), 16_384) for name in ("clip", "infoloob", "cloob")] == [True] * 3
    assert not shards_rows(build(config.Clip()), 16_383)
    assert not shards_rows(build(config.SigLip()), 65_536)


@pytest.mark.slow
def test_a_session_takes_the_rows_where_the_batch_is_large(by_threads, maker, monkeypatch):
    from trainer.training.rank_check import check

    monkeypatch.setattr(module, "FROM_PAIRS", 16)
    for objective in (config.Clip(mask_duplicates=True), config.Cloob()):
        found = by_threads(2, lambda shared, chosen=objective: check(maker(chosen), shared, updates=3))[0]
        assert found.equal
        assert found.parts.weights < 1e-4
