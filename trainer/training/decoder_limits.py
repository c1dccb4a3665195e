"""What a decoder cannot show: an equal one learns pictures from their true attributes, without any embedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from trainer import config
from trainer.analysis.progress import Progress
from trainer.data import Pairs
from trainer.data.augment import random_crops
from trainer.data.order import batches, steps_per_epoch
from trainer.evaluation.decode_measures import true_rows
from trainer.inference.decode import OpenDecoder
from trainer.methods.batch import Batch
from trainer.methods.decoder import DecoderPictures, parts_without_material, pictures_of
from trainer.training import optimizer


def attribute_decoder(
    decoder: OpenDecoder, pairs: Pairs, labels: Mapping[str, Sequence[str]], progress: Progress
) -> DecoderPictures:
    """Return a decoder of true attributes with the size, seed, order, crops and steps of `decoder`.

    What the judge cannot read off its samples either is lost by the decoder, whatever it is told.
    """
    run, total = decoder.run, decoder.opened.step
    objective = run.objective
    assert isinstance(objective, config.EmbeddingDecoder)
    rows = torch.from_numpy(true_rows(pairs, labels))
    where = decoder.opened.device
    torch.manual_seed(run.seed)
    method = parts_without_material(objective, rows.shape[1], seed=run.seed).to(where).train()
    updates = optimizer.build(method, run.optimizer)
    size = run.optimizer.batch_size
    per_epoch = steps_per_epoch(len(pairs), batch_size=size)
    planned = max(total, per_epoch * run.optimizer.epochs)
    for step in range(total):
        epoch, position = divmod(step, per_epoch)
        if position == 0:
            order = list(batches(len(pairs), size, run.seed, epoch))
        at = np.sort(order[position])
        pixels = torch.from_numpy(np.array(pairs.images[at])).to(where)
        seen = random_crops(pixels, at, run.seed, epoch, run.optimizer.crop_scale)
        conditions = rows[at].to(where)
        optimizer.set_learning_rate(updates, optimizer.learning_rate(step, total_steps=planned, choice=run.optimizer))
        loss = method.compare(
            (conditions, conditions, pictures_of(seen, method.size).flatten(1)), Batch(seen, None, step=step)
        )
        updates.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.clip_gradients(method.parameters(), run.optimizer.clip_norm)
        updates.step()
        method.follow(decoder.opened.model, (step + 1) / total)
        progress((step + 1) / total, f"training a decoder of true attributes, step {step + 1:,} of {total:,}")
    return method.eval()
