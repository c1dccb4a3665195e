"""Metrics of a decoder on held-out pairs, by the names of `trainer.metrics` without their prefix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.data.augment import normalized
from trainer.evaluation.heldout import Embedded, HeldOut
from trainer.inference.batches import Alive
from trainer.inference.decode import MEASURED
from trainer.losses import denoising, noise_schedule
from trainer.losses.denoising import errors_by_level
from trainer.methods.decoder import DecoderPictures, pictures_of, scaled
from trainer.metrics import NOISE_SHARES
from trainer.store.question import Question

MOST: Final = MEASURED
"""Held-out pairs that are decoded; the first ones, so that all decoders of a data set are tried on the same."""
_AT_ONCE: Final = 64


@torch.inference_mode()
def decoder_metrics(
    heldout: HeldOut, embedded: Embedded, method: DecoderPictures, *, alive: Alive = None
) -> dict[str, float]:
    """Return errors of the mean picture and of the denoiser by noise level, and cosines of the prior.

    The noise of pair i at a level depends on i and the level alone: two decoders are tried with the same.

    Args:
        embedded: As `heldout.embed` gives it.
        method: The decoder; its moving average denoises.
        alive: Called again and again.
    """
    assert embedded.image is not None
    assert embedded.text is not None
    where = method.alpha_bar.device
    image, text = (torch.from_numpy(rows[:MOST]).to(where) for rows in (embedded.image, embedded.text))
    training = method.training
    method.eval()
    try:
        pictures = torch.cat(list(_pictures(heldout, method, where)))
        mean = torch.cat([method.mean_picture(rows) for rows in image.split(_AT_ONCE)])
        losses = _by_level(method, pictures, image, alive)
        foreseen = F.normalize(method.prior(scaled(text)), dim=1)
    finally:
        method.train(training)
    error = F.mse_loss(mean, pictures).item() / 4
    return {
        "mean_picture_mse": error,
        "mean_picture_r2": 1 - error / (pictures.var(dim=0, unbiased=False).mean().item() / 4),
        **losses,
        "prior_cosine": (foreseen * image).sum(dim=1).mean().item(),
        "text_cosine": (text * image).sum(dim=1).mean().item(),
    }


def question(n: int, size: int) -> Question:
    """Return the question that these numbers answer."""
    return Question("decoder", min(n, MOST), protocol=f"pictures of {size} pixels, values from 0 to 1")


def _pictures(heldout: HeldOut, method: DecoderPictures, where: torch.device) -> Iterator[Float[Tensor, "m 3 s s"]]:
    count = min(MOST, len(heldout.pairs))
    for start in range(0, count, _AT_ONCE):
        pixels = torch.from_numpy(np.array(heldout.pairs.images[start : min(count, start + _AT_ONCE)]))
        yield pictures_of(normalized(pixels.to(where)), method.size)


def _by_level(
    method: DecoderPictures, pictures: Float[Tensor, "n 3 s s"], image: Float[Tensor, "n d"], alive: Alive
) -> dict[str, float]:
    """Return the velocity error at each share of the steps, and the mean loss with and without embeddings."""
    numbers: dict[str, float] = {}
    losses: dict[bool, list[float]] = {False: [], True: []}
    for share in NOISE_SHARES:
        level = noise_schedule.STEPS * share // 100
        chance = torch.Generator().manual_seed(level)
        noise = torch.randn(pictures.shape, generator=chance).to(pictures.device)
        signal_share = method.alpha_bar[level].expand(len(pictures))
        noisy = noise_schedule.noised(pictures, noise, signal_share)
        velocity = noise_schedule.velocity_of(pictures, noise, signal_share)
        for without in (False, True):
            guess = _guessed(method, noisy, share / 100, image, without=without, alive=alive)
            losses[without].append(denoising(guess, velocity, signal_share).item())
            if not without:
                numbers[f"velocity_error_{share}pct"] = errors_by_level(guess, velocity).mean().item()
    return numbers | {
        "denoising_loss": float(np.mean(losses[False])),
        "denoising_loss_dropped": float(np.mean(losses[True])),
    }


def _guessed(
    method: DecoderPictures,
    noisy: Float[Tensor, "n 3 s s"],
    level: float,
    image: Float[Tensor, "n d"],
    *,
    without: bool,
    alive: Alive,
) -> Float[Tensor, "n 3 s s"]:
    guessed = []
    for rows, conditions in zip(noisy.split(_AT_ONCE), image.split(_AT_ONCE), strict=True):
        if alive is not None:
            alive()
        n = len(rows)
        dropped = torch.full((n,), without, device=rows.device)
        guessed.append(method.averaged(rows, torch.full((n,), level, device=rows.device), conditions, dropped))
    return torch.cat(guessed).float()
