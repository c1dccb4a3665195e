"""Sessions of every objective on a few random pictures: a card's waits are counted in them, without or with a card."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from trainer import config
from trainer.data import Pairs
from trainer.data.tokenizer import Tokenizer, train_tokenizer
from trainer.training.session import TrainingSession

MODEL = config.TinyTowers(
    image_size=32, image_width=8, text_width=32, text_layers=1, text_heads=2, context_length=16, embed_dim=32
)
TRANSFORMER = replace(MODEL, image_tower="vit", image_width=32, image_layers=1)
TINY = config.Run(
    name="tiny",
    device="cpu",
    data=config.Scenes(train_pairs=256, heldout_pairs=16),
    model=MODEL,
    optimizer=config.Optimizer(batch_size=8, epochs=3, learning_rate=5e-4, warmup_steps=2),
    watching=config.Watching(),
)
OBJECTIVES: dict[str, Any] = {
    "clip": config.Clip(),
    "cloob": config.Cloob(),
    "hopfield_infonce": config.HopfieldInfoNce(),
    "infoloob": config.InfoLoobPair(),
    "convirt": config.ConVirt(sample_sentences=True, mask_duplicates=True),
    "siglip": config.SigLip(),
    "dhn_nce": config.DhnNce(),
    "dhn_nce masked": config.DhnNce(mask_duplicates=True),
    "simclr": config.SimClr(),
    "simclr with effects": config.SimClr(
        loss="nt_logistic", negatives="semi-hard", rotate=0.5, cutout=0.3, noise=0.05, sobel=0.3
    ),
    "dcl": config.Dcl(),
    "simsiam": config.SimSiam(),
    "byol": config.Byol(),
    "moco": config.Moco(queue=32),
    "pcl": config.Pcl(queue=32, clusters=4, warmup_epochs=1),
    "swav": config.Swav(prototypes=8, frozen_steps=1),
    "contrastive_margin": config.ContrastiveMargin(),
    "triplet": config.Triplet(),
    "margin": config.Margin(),
    "cross_entropy": config.CrossEntropy(),
    "one_vs_all": config.OneVsAll(drop_frequent=2),
    "pairwise_ranking": config.PairwiseRanking(drop_frequent=2),
    "multiclass": config.Multiclass(drop_frequent=2),
    "caption": config.CaptionPrediction(),
    "word2vec": config.Word2Vec(),
}
"""Every objective but the decoder, which needs a trained run."""
UPDATES = 2
"""Of an epoch; they are read together."""
PICTURES = UPDATES * TINY.optimizer.batch_size


@functools.cache
def _pairs() -> tuple[Pairs, Tokenizer]:
    pixels = np.random.default_rng(0).integers(0, 256, (PICTURES, 32, 32, 3), np.uint8)
    captions = [f"picture {row % 7} of {row % 5}" for row in range(PICTURES - 2)] + ["picture 0 of 0"] * 2
    labels, paths = [f"c{row % 4}" for row in range(PICTURES)], [f"p{row}" for row in range(PICTURES)]
    return Pairs("random", "train", pixels, captions, labels, paths, {}, ""), train_tokenizer(captions, 256)


def session(name: str, where: torch.device, model: config.TinyTowers = MODEL, **optimizer: Any) -> TrainingSession:
    """Return the session of an objective, before its first update."""
    pairs, tokenizer = _pairs()
    run = replace(TINY, objective=OBJECTIVES[name], model=model, optimizer=replace(TINY.optimizer, **optimizer))
    return TrainingSession(run, pairs, tokenizer, where)
