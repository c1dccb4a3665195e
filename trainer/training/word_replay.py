"""Replay one update of word2vec: its pairs and drawn negatives, and what the update did to every word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from trainer import config
from trainer.analysis.progress import Progress
from trainer.methods import Batch, Word2VecTokens
from trainer.store import Workspace
from trainer.store.replay_records import WordReplay
from trainer.training.replay import ReplayError, check_step, repeated
from trainer.training.session import TrainingSession

MOST_SCORED: Final = 48
"""Words whose scores with one another are kept, the most frequent centers."""
_AT_ONCE: Final = 1_024

Examples = tuple[Int[Tensor, " n"], Int[Tensor, " n"], Int[Tensor, "n k"]]


def learns_words(run: config.Run) -> bool:
    """Return whether a step of this run is one of word2vec."""
    return isinstance(run.objective, config.Word2Vec)


def replay_words(
    workspace: Workspace, run_id: int, step: int, *, compare: Sequence[str] = (), progress: Progress
) -> WordReplay:
    """Replay the update of a word2vec run that led to `step`, verified at the next checkpoint bit by bit.

    Losses, gradients and scores are in float64, of the weights and draws that the update had. Mikolov et al., 2013,
    https://arxiv.org/abs/1310.4546, equations 2 (full), 3 (hierarchical) and 4 (negatives); the step is that of
    Jurafsky and Martin, Speech and Language Processing, 3rd ed., equations 6.34 to 6.39, summed over the batch and
    taken by the optimizer of the run.

    Raises:
        ReplayError: As `trainer.training.replay.replay`, or objectives of pairs are to be compared.
    """
    row = workspace.runs.get(run_id)
    run = workspace.runs.config_of(row.id)
    if compare:
        raise ReplayError(f"{row.name} compares no images with texts: {', '.join(compare)} have no loss on its words.")
    check_step(row, run, step)
    made = repeated(workspace, row, step, _seen, _seen, progress)
    (examples, *before), (_, *after) = made.before, made.after
    method = _method(made.state.training)
    tokens, pairs = _ordered(examples)
    scored = tokens[: min(MOST_SCORED, len(torch.unique(examples[0])))]
    losses, scores = zip(*((_losses(method, v, examples), _scores(method, v, scored)) for v in (before, after)))
    return WordReplay(
        step=step,
        began=made.state.began,
        verified=made.state.verified,
        loss=made.update.loss,
        softmax=run.objective.softmax,  # type: ignore[union-attr]
        words=tuple(made.state.tokenizer.decode([token]).strip() or f"token {token}" for token in tokens.tolist()),
        pairs=pairs,
        losses=torch.stack(losses).numpy(),
        gradients=_gradients(method, before, examples)[:, tokens].numpy(),
        scores=torch.stack(scores).numpy(),
    )


def _method(training: TrainingSession) -> Word2VecTokens:
    assert isinstance(training.method, Word2VecTokens)
    return training.method


def _seen(training: TrainingSession, batch: Batch) -> tuple[Examples, Tensor, Tensor]:
    """Return the examples of a batch, and copies of all input and output vectors."""
    method, towers = _method(training), training.towers
    weights: tuple[Any, ...] = (towers.text.vectors.weight, method.context.weight)
    inputs, outputs = (weight.detach().cpu().double().clone() for weight in weights)
    return method.examples(towers, batch), inputs, outputs


def _ordered(examples: Examples) -> tuple[Int[Tensor, " w"], Int[np.ndarray, "n k"]]:
    """Return the tokens, the most frequent centers first, and the examples as places among them."""
    centers, contexts, negatives = examples
    counted = torch.where(negatives == contexts[:, None], -1, negatives)
    every = torch.cat([centers[:, None], contexts[:, None], counted], dim=1)
    tokens = torch.unique(every[every >= 0])
    often = torch.bincount(centers, minlength=int(tokens.max()) + 1)[tokens]
    tokens = tokens[torch.sort(-often, stable=True).indices]
    index = torch.full((int(tokens.max()) + 2,), -1)
    index[tokens] = torch.arange(len(tokens))
    return tokens, index[every].numpy()


def _losses(method: Word2VecTokens, vectors: Sequence[Tensor], examples: Examples) -> Float[Tensor, " n"]:
    """Return the loss of each pair; differentiable in the vectors."""
    parts = zip(*(part.split(_AT_ONCE) for part in examples), strict=True)
    return torch.cat([_part_losses(method, vectors, part) for part in parts])


def _part_losses(method: Word2VecTokens, vectors: Sequence[Tensor], part: Sequence[Tensor]) -> Float[Tensor, " n"]:
    (inputs, outputs), (centers, contexts, negatives) = vectors, part
    center = inputs[centers]
    if method.softmax == "full":
        return F.cross_entropy(center @ outputs.T, contexts, reduction="none")
    if method.softmax == "hierarchical":
        return -_log_paths(method, center, outputs, contexts)
    matched = F.softplus(-(center * outputs[contexts]).sum(1))
    unmatched = F.softplus(torch.einsum("nd,nkd->nk", center, outputs[negatives]))
    return matched + unmatched.masked_fill(negatives == contexts[:, None], 0).sum(1)


def _log_paths(method: Word2VecTokens, center: Tensor, outputs: Tensor, contexts: Tensor) -> Float[Tensor, " n"]:
    nodes, signs, used = method.path_of(contexts)
    decided = F.logsigmoid(signs * torch.einsum("nd,npd->np", center, outputs[nodes]))
    return decided.masked_fill(~used, 0).sum(1)


def _scores(method: Word2VecTokens, vectors: Sequence[Tensor], scored: Int[Tensor, " s"]) -> Float[Tensor, "s s"]:
    inputs, outputs = vectors
    if method.softmax != "hierarchical":
        return inputs[scored] @ outputs[scored].T
    return torch.stack([_log_paths(method, inputs[word].expand(len(scored), -1), outputs, scored) for word in scored])


def _gradients(method: Word2VecTokens, vectors: Sequence[Tensor], examples: Examples) -> Float[Tensor, "2 v"]:
    """Return the length of the gradient of the batch's loss on every token's input and output vector."""
    leaves = [part.clone().requires_grad_() for part in vectors]
    loss = _losses(method, leaves, examples).mean()
    lengths = [gradient.norm(dim=1) for gradient in torch.autograd.grad(loss, leaves)]
    if method.softmax == "hierarchical":  # output vectors are of nodes there, not of words
        lengths[1] = torch.full_like(lengths[1], torch.nan)
    return torch.stack(lengths)
