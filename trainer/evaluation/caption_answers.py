"""Class prediction with a model that predicts captions: the class whose prompts are likeliest."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float, UInt8

from trainer.analysis.class_prompts import captioned
from trainer.data.augment import normalized
from trainer.device import measuring, memory_format, sent
from trainer.evaluation.word_answers import AT_ONCE
from trainer.losses.caption_prediction import token_log_probabilities
from trainer.methods import CaptionPrediction
from trainer.models import TwoTowers
from trainer.prompt_suites import PromptSuite


@torch.inference_mode()
def prompt_likelihoods(
    towers: TwoTowers,
    method: CaptionPrediction,
    images: UInt8[np.ndarray, "n s s 3"],
    suite: PromptSuite,
    where: torch.device,
) -> Float[np.ndarray, "n c"]:
    """Return log p(class's prompt | image), the mean over templates taken of p; then restore the modules' modes."""
    modes = towers.training, method.training
    towers.eval()
    method.eval()
    prompts = [captioned(template, name) for name in suite.classes for template in suite.templates]
    tokens = method.encoded(prompts).to(where)
    log_likelihood = np.zeros((len(images), len(prompts)))
    try:
        with measuring(where):
            for start in range(0, len(images), AT_ONCE):
                part = sent(np.array(images[start : start + AT_ONCE]), where)
                features = towers.features(normalized(part).contiguous(memory_format=memory_format(where)))
                for number, row in enumerate(tokens):
                    rows = row.expand(len(part), -1)
                    log_p = token_log_probabilities(method.decoder(features, rows).float(), rows[:, 1:])
                    total = torch.where(method.said(rows), log_p, 0).sum(dim=1)
                    log_likelihood[start : start + len(part), number] = total.cpu().numpy()
    finally:
        towers.train(modes[0])
        method.train(modes[1])
    by_class = log_likelihood.reshape(len(images), len(suite.classes), len(suite.templates))
    return np.logaddexp.reduce(by_class, axis=2) - math.log(len(suite.templates))
