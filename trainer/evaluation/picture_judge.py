"""The judge of decoded pictures: trained once for each data set and size, then kept (`trainer.store.derived`)."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int

from trainer.analysis.progress import Progress
from trainer.checkpoints import checkpoint
from trainer.data import Pairs
from trainer.data.augment import normalized
from trainer.methods.decoder import pictures_of
from trainer.models.judge import Judge
from trainer.store import derived
from trainer.store.disk import DiskTrouble
from trainer.untrusted import confined

EPOCHS: Final = 6
_BATCH: Final = 64
_AT_ONCE: Final = 64
_MOST_VALUES: Final = 64

Labels = dict[str, list[str]]
"""Attribute -> its values."""


def judge_of(workspace_folder: Path, pairs: Pairs, size: int, epochs: int, progress: Progress) -> tuple[Judge, Labels]:
    """Return a judge of the attributes of training pairs, and the values of each; seeded, without any embedding.

    Args:
        workspace_folder: Where it is kept. One that is for looking only is neither written nor asked: a stranger's
            judge could be anything.
        pairs: The training split.
        size: Side of the pictures in pixels.
        epochs: Of its training.
    """
    labels = labels_of(pairs)
    torch.manual_seed(0)
    judge = Judge({name: len(values) for name, values in labels.items()})
    if not labels:
        return judge.eval(), labels
    truth = truth_of(pairs, labels)
    name = f"judge-{_digest(pairs, labels, truth, size, epochs)}"
    folder = derived.root(workspace_folder) / "cache" / name
    loaded, _ = checkpoint.newest(folder, training=False)
    if loaded is not None:
        checkpoint.load_weights(loaded, {"judge": judge})
        return judge.eval(), labels
    steps = _train(judge, pairs, truth, size, epochs, progress)
    confined.make_folder(derived.root(workspace_folder), f"cache/{name}")
    try:
        checkpoint.save(folder, modules={"judge": judge}, training={"step": steps}, tokenizer="")
    except DiskTrouble:
        progress(1.0, "the judge is not kept: the disk has no room for it")
    return judge.eval(), labels


def labels_of(pairs: Pairs) -> Labels:
    """Return the attributes that can be judged, with their values in order."""
    columns = {name: sorted(set(values) - {""}) for name, values in pairs.metadata.items()}
    return {name: values for name, values in columns.items() if 2 <= len(values) <= _MOST_VALUES}


def truth_of(pairs: Pairs, labels: Mapping[str, Sequence[str]]) -> dict[str, Int[np.ndarray, " n"]]:
    """Return attribute -> place of each pair's value; -1 where a pair has none of them."""
    number_of = {name: {value: number for number, value in enumerate(values)} for name, values in labels.items()}
    return {name: np.array([of.get(value, -1) for value in pairs.metadata[name]]) for name, of in number_of.items()}


def pictures_at(pairs: Pairs, size: int) -> Float[torch.Tensor, "n 3 s s"]:
    """Return the pictures of pairs, resized, with values from -1 to 1."""
    images = pairs.images
    parts = [torch.from_numpy(np.array(images[at : at + _AT_ONCE])) for at in range(0, len(pairs), _AT_ONCE)]
    return torch.cat([pictures_of(normalized(part), size) for part in parts])


def _train(
    judge: Judge, pairs: Pairs, truth: Mapping[str, Int[np.ndarray, " n"]], size: int, epochs: int, progress: Progress
) -> int:
    """Train the judge, and return how many updates that took."""
    optimizer = torch.optim.AdamW(judge.parameters(), lr=2e-3, weight_decay=0.01)
    rng, batch = np.random.default_rng(0), min(_BATCH, len(pairs))
    total = epochs * (len(pairs) // batch)
    for step in range(total):
        if step % (len(pairs) // batch) == 0:
            order = rng.permutation(len(pairs))
        at = np.sort(order[step % (len(pairs) // batch) * batch :][:batch])
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 - step / total)
        said = judge(pictures_at(pairs.part(at, split="train"), size))
        losses = [
            F.cross_entropy(logits, torch.from_numpy(truth[name][at]), ignore_index=-1) for name, logits in said.items()
        ]
        loss = torch.stack(losses).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress((step + 1) / total, f"training the judge, step {step + 1} of {total}")
    return total


def _digest(pairs: Pairs, labels: Labels, truth: Mapping[str, Int[np.ndarray, " n"]], size: int, epochs: int) -> str:
    """Return what a judge depends on: pictures, attributes, sizes, and the code that makes it."""
    identity = json.dumps([pairs.fingerprint, len(pairs), labels, size, epochs, str(torch.__version__)])
    digest = hashlib.sha256(identity.encode("utf-8", "replace"))
    for rows in truth.values():
        digest.update(rows.tobytes())
    for code in (Judge, _train, pictures_at, pictures_of):
        digest.update(inspect.getsource(code).encode())
    return digest.hexdigest()[:24]
