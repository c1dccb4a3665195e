"""Signatures of the losses: parameters in a fixed order, positional; those with a default keyword-only."""

import inspect

import pytest

from trainer import losses

CALLS = {
    "info_nce": "image text inv_tau",
    "info_loob": "anchors samples inv_tau",
    "hopfield_retrieval": "state stored beta",
    "cloob": "image text inv_tau beta",
    "hopfield_info_nce": "image text inv_tau beta",
    "info_loob_pair": "image text inv_tau",
    "convirt": "image text inv_tau image_weight",
    "siglip": "image text scale bias",
    "dhn_nce": "image text inv_tau beta_image beta_text",
    "nt_xent": "view_a view_b inv_tau",
    "nt_logistic": "view_a view_b inv_tau",
    "dcl": "view_a view_b inv_tau",
    "moco": "query key queue inv_tau",
    "swav": "view_a view_b prototypes inv_tau",
    "margin_triplet": "view_a view_b margin",
    "contrastive_margin": "embeddings labels",
    "triplet": "embeddings labels",
    "margin": "embeddings labels",
    "pairwise_ranking": "positive negative counted",
    "cross_entropy": "logits classes",
    "one_vs_all_logistic": "logits bag_of_words",
    "multiclass_logistic": "logits bag_of_words",
    "caption_prediction": "logits tokens said",
    "skip_gram": "center context negatives",
    "skip_gram_softmax": "logits context",
    "skip_gram_tree": "scores signs used",
    "proto_nce": "query key queue prototypes assignments concentrations",
    "simsiam": "prediction_a prediction_b projection_a projection_b",
    "byol": "prediction_a prediction_b target_a target_b",
    "denoising": "prediction velocity alpha_bar",
    "autoregressive": "logits values",
    "variational_bound": "pictures foresee alpha_bar",
}
BY_NAME = {
    "cloob": {"retrieval_share": 1.0, "residual": False},
    "dcl": {"sigma": None},
    "denoising": {"most_snr": 5.0},
    "dhn_nce": {"detach_weights": False},
    "margin": {"sampler": "distance-weighted"},
    "variational_bound": {"draws": 32, "generator": None},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_loss_is_called_as_documented(name):
    parameters = inspect.signature(getattr(losses, name)).parameters.values()
    by_position = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert [p.name for p in by_position] == CALLS[name].split()
    assert all(p.default is p.empty for p in by_position)
    assert len(by_position) + len(by_name) == len(parameters)
    assert all(default is not inspect.Parameter.empty for default in by_name.values())
    assert BY_NAME.get(name, {}).items() <= by_name.items()


@pytest.mark.parametrize("name", CALLS)
def test_a_loss_says_its_shapes_and_its_source(name):
    loss = getattr(losses, name)
    tensors = [p.annotation for p in inspect.signature(loss).parameters.values() if "Tensor" in str(p.annotation)]
    assert tensors
    assert all("[Tensor, " in str(annotation) for annotation in tensors)
    assert any(word in loss.__doc__ for word in ("https://", "Hadsell")), "the paper"
    assert any(word in loss.__doc__.lower() for word in ("equation", "figure", "table 2", "`")), "the formula"
