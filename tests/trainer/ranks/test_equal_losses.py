"""Several ranks make the updates of one process: every objective, in losses and in weights."""

from dataclasses import replace

import pytest
import torch

from tests.nightly import few_plain
from trainer import config
from trainer.ranks import RankError
from trainer.training.rank_check import check
from trainer.training.session import FitError

VIT = config.TinyTowers(
    image_tower="vit", image_size=32, patch_size=16, image_width=32, image_layers=1, text_width=32, text_layers=1,
    text_heads=2, context_length=12, embed_dim=16, vocabulary=300,
)  # fmt: skip
RESNET = replace(VIT, image_tower="resnet", image_width=8)

WITHOUT_BATCH_NORM = {
    "clip": config.Clip(),
    "clip masked": config.Clip(mask_duplicates=True),
    "cloob": config.Cloob(),
    "hopfield_infonce": config.HopfieldInfoNce(),
    "infoloob": config.InfoLoobPair(),
    "convirt": config.ConVirt(mask_duplicates=True),
    "siglip": config.SigLip(),
    "dhn_nce": config.DhnNce(mask_duplicates=True),
    "simclr": config.SimClr(),
    "dcl": config.Dcl(weighted=True),
    "moco": config.Moco(queue=32),
    "pcl": config.Pcl(queue=32, clusters=4, clusterings=2, warmup_epochs=1),
    "swav": config.Swav(prototypes=8, frozen_steps=1),
    "contrastive_margin": config.ContrastiveMargin(),
    "triplet": config.Triplet(),
    "margin": config.Margin(learn_beta=True),
    "cross_entropy": config.CrossEntropy(),
    "one_vs_all": config.OneVsAll(drop_frequent=0),
    "pairwise_ranking": config.PairwiseRanking(drop_frequent=0),
    "multiclass": config.Multiclass(drop_frequent=0),
    "caption_prediction": config.CaptionPrediction(decoder_width=32, decoder_layers=1),
    "word2vec": config.Word2Vec(),
}
WITH_BATCH_NORM = {
    "clip": (config.Clip(), RESNET),
    "cloob": (config.Cloob(), RESNET),
    "simsiam": (config.SimSiam(), VIT),
    "byol": (config.Byol(), VIT),
    "simsiam of a resnet": (config.SimSiam(), RESNET),
}


@pytest.mark.slow
@few_plain(4, "name", WITHOUT_BATCH_NORM)
def test_two_ranks_equal_one_process(maker, by_threads, name):
    # PCL has clusters from the second epoch on, SwAV learns its prototypes from the second step on.
    updates = 5 if name == "pcl" else 3
    found = by_threads(2, lambda shared: check(maker(WITHOUT_BATCH_NORM[name]), shared, updates=updates))[0]
    assert found.updates == updates
    assert found.parts.loss == found.parts.weights == 0, "not the bits of micro-batches"
    assert found.whole.loss <= 1e-6
    assert found.equal


@pytest.mark.slow
@few_plain(1, "name", ["clip", "cloob", "word2vec"])
def test_four_ranks_equal_one_process(maker, by_threads, name):
    found = by_threads(4, lambda shared: check(maker(WITHOUT_BATCH_NORM[name]), shared, updates=3))[0]
    assert found.parts.loss == found.parts.weights == 0, "added in another order than micro-batches"
    assert found.whole.loss <= 1e-6


@pytest.mark.slow
@few_plain(1, "name", ["clip", "cloob", "siglip"])
def test_in_float64_two_ranks_equal_the_undivided_batch(maker, by_threads, name):
    """At the sixth update SigLIP differs by 1e-5 in float32: rounding that grew, of which float64 has less."""
    make = maker(WITHOUT_BATCH_NORM[name])

    def in_double(shared):
        session = make(shared)
        for module in session.modules.values():
            module.double()
        drawn = session.batch

        def batch():
            found = drawn()
            return replace(found, images=found.images.double())

        session.batch = batch
        return session

    found = by_threads(2, lambda shared: check(in_double, shared, updates=6))[0]
    assert 0 < found.whole.weights <= 1e-12
    assert found.whole.loss <= 1e-12


@pytest.mark.slow
@few_plain(1, "name", WITH_BATCH_NORM)
def test_batch_norms_see_the_rows_of_all_ranks(maker, by_threads, name):
    make = maker(*WITH_BATCH_NORM[name])
    found = by_threads(2, lambda shared: check(make, shared, updates=3))[0]
    assert found.batch_norm
    assert found.parts is None
    assert found.whole.loss <= 2e-6
    assert found.whole.weights <= 1e-3


def test_micro_batches_inside_a_rank_change_nothing(maker, by_threads):
    make = maker(config.Cloob(), micro_batch=4)
    found = by_threads(2, lambda shared: check(make, shared, updates=3))[0]
    assert found.whole.loss <= 1e-6
    assert found.parts.loss <= 1e-6


def test_keys_in_shuffled_groups_are_refused(maker, by_threads):
    with pytest.raises(FitError, match=r"ranks=1, or choose the ViT"):
        by_threads(2, maker(config.Moco(queue=32), RESNET))


def test_a_rank_with_other_data_is_named(maker, by_threads):
    """The check costs one number a rank and step."""

    def act(shared):
        training = maker(config.SimClr())(shared)
        if shared.rank == 1:
            training.method.projector[0].weight.data.add_(1)
            original = training.method.compare
            training.method.compare = lambda rows, batch: 2 * original(rows, batch)
        return training.update()

    with pytest.raises(RankError, match=r"Rank 1 of 2 computed the loss .* where rank 0 computed"):
        by_threads(2, act)


def test_a_loss_that_is_no_number_is_one_on_every_rank_and_changes_nothing(maker, by_threads):
    def act(shared):
        training = maker(config.Clip())(shared)
        before = [p.clone() for p in training.towers.parameters()]
        batch = training.batch()
        if shared.rank == 1:
            batch.images.fill_(float("nan"))
        update = training.update(batch)
        same = all(torch.equal(a, b) for a, b in zip(before, training.towers.parameters(), strict=True))
        return update.made, same, training.step

    assert by_threads(2, act) == [(False, True, 0)] * 2


@pytest.mark.slow
@few_plain(1, "objective", [config.Clip(), config.SimSiam()], ids=["clip", "with batch norms"])
def test_a_wrong_reduction_is_found_in_one_update(maker, by_threads, objective):
    """The gradient is averaged instead of added: Adam and the loss of a first update do not show it."""

    def act(shared):
        total = shared.summed
        shared.summed = lambda own: total(own) / shared.size
        return check(maker(objective), shared, updates=1)

    found = by_threads(2, act)[0]
    assert found.whole.loss <= 1e-6
    assert found.whole.gradients > 0.1
    assert not found.equal
    assert "not equal" in found.words
