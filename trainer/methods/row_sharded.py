"""Losses of very large batches over ranks: each computes its own rows of every table, and no rank computes all.

Work and tables of a rank are 1/W of the whole, where `compare` on every rank would repeat all of it. What other ranks'
rows ask of a pair as a key comes back to its owner and is added in rank order. The numbers are those of `compare`
(float64: 1e-12), but not its bits.
"""

from __future__ import annotations

from typing import Final, TypeGuard

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer.losses import hopfield_retrieval
from trainer.losses.batch_size import needs_two
from trainer.losses.precision import full_precision
from trainer.losses.right_answers import Answers
from trainer.losses.tiles import above_match, row_logsumexp
from trainer.methods.batch import Batch
from trainer.methods.image_text import ClipPairs, CloobPairs, ImageText, InfoLoobPairs
from trainer.methods.method import Method
from trainer.ranks import Ranks

FROM_PAIRS: Final = 16_384
"""Pairs in a batch from which it pays: below, the whole loss costs a rank less than more exchanges do."""

Row = Float[Tensor, "b d"]


def shards_rows(method: Method, pairs: int) -> TypeGuard[ImageText]:
    """Return whether the loss of a batch is computed by rows: of CLIP, InfoLOOB and CLOOB, where it is large."""
    return type(method) in (ClipPairs, InfoLoobPairs, CloobPairs) and pairs >= FROM_PAIRS


def row_sharded(
    method: ImageText, local: tuple[Tensor, ...], batch: Batch, ranks: Ranks
) -> tuple[Float[Tensor, ""], tuple[Tensor, Tensor]]:
    """Return the whole loss, and its gradient by this rank's unit rows.

    What `method` learns gets the part of its gradient that comes from this rank's rows: those of all ranks are to be
    added.

    Args:
        method: CLIP, InfoLOOB or CLOOB.
        local: Images and texts of this rank, as many as each other rank has.
        batch: This rank's part of the batch.

    Raises:
        ValueError: A single pair.
    """
    wide = [rows.detach() if rows.dtype == torch.float64 else rows.detach().float() for rows in local]
    image, text = (rows.requires_grad_() for rows in wide)
    (images, texts), (start, _) = ranks.gather([image, text])
    images.requires_grad_()
    texts.requires_grad_()
    n = len(images)
    answers = method.answers_of(batch.all, image.device)
    rolled = None if answers is None else answers.rolled(-start)
    # A row's match comes first among the columns: then a table of some rows is cut like a whole one.
    near = Columns(images.roll(-start, 0), texts.roll(-start, 0), rolled)
    with torch.autocast(image.device.type, enabled=False), torch.enable_grad():
        if isinstance(method, CloobPairs) and method.choice.retrieval_share > 0:
            loss = _cloob(method, image, text, (images, texts), near, ranks, start)
        else:
            loss = _pair_loss(method, image, text, near) / n
            loss.backward()
            loss = loss.detach()
    gradients = []
    for rows, stored in ((image, images), (text, texts)):
        as_key = ranks.scattered(stored.grad if stored.grad is not None else torch.zeros_like(stored))
        gradients.append(as_key if rows.grad is None else rows.grad + as_key)
    return ranks.stacked(loss).sum(0), (gradients[0], gradients[1])


class Columns:
    """All rows of a batch as columns, this rank's first.

    Attributes:
        images: Of all ranks.
        texts: Of all ranks.
        of_images: Which texts are right answers of which images; as in the losses.
        of_texts: Which images are right answers of which texts.
    """

    def __init__(self, images: Tensor, texts: Tensor, answers: Answers) -> None:
        self.images, self.texts = images, texts
        self.of_images, self.of_texts = answers, None if answers is None else answers.transposed


def _pair_loss(method: ImageText, image: Row, text: Row, near: Columns) -> Float[Tensor, ""]:
    """Return this rank's rows of a loss in both directions, summed; CLOOB's is that without retrieval."""
    if isinstance(method, ClipPairs):
        inv_tau = method.log_inv_tau.exp()
        return _one_way(image, near.texts, inv_tau, near.of_images, False) / 2 + (
            _one_way(text, near.images, inv_tau, near.of_texts, False) / 2
        )
    needs_two(len(near.images), "info_loob_pair")
    inv_tau = torch.as_tensor(method.choice.inv_tau, dtype=image.dtype, device=image.device)
    both = _one_way(image, near.texts, inv_tau, near.of_images, True) + _one_way(
        text, near.images, inv_tau, near.of_texts, True
    )
    return both / inv_tau


@full_precision
def _one_way(
    anchors: Row, columns: Tensor, inv_tau: Float[Tensor, ""], answers: Answers, leave_out: bool
) -> Float[Tensor, ""]:
    """Return the sum over anchors of log-sum-exp less match; anchor k matches column k."""
    matched = inv_tau * (anchors * columns[: len(anchors)]).sum(dim=1)
    sums = row_logsumexp(anchors, columns, inv_tau, leave_out_matched=leave_out, answers=answers)
    return above_match(sums, matched).sum()


def _cloob(
    method: CloobPairs,
    image: Row,
    text: Row,
    stored: tuple[Tensor, Tensor],
    near: Columns,
    ranks: Ranks,
    start: int,
) -> Float[Tensor, ""]:
    """Return this rank's part of the loss, and give `image`, `text` and `stored` their gradients.

    Two phases: own rows of four retrievals from all patterns, then own rows of InfoLOOB among all retrievals.
    """
    choice, (images, texts) = method.choice, stored
    n = len(images)
    needs_two(n, "info_loob")

    def retrieved(state: Row, patterns: Tensor) -> Row:
        retrieval = hopfield_retrieval(state, patterns, choice.scale_hopfield)
        return F.normalize(state + retrieval, dim=1) if choice.residual else retrieval

    anchors = (retrieved(image, images), retrieved(text, texts))
    samples = (retrieved(text, images), retrieved(image, texts))
    gathered, _ = ranks.gather([rows.detach() for rows in samples])
    inv_tau = torch.as_tensor(choice.inv_tau, dtype=image.dtype, device=image.device)
    share, total = choice.retrieval_share, image.new_zeros(())
    from_anchors, from_samples = [], []
    for anchor, everybody, answers in zip(anchors, gathered, (near.of_images, near.of_texts), strict=True):
        leaf, columns = anchor.detach().requires_grad_(), everybody.requires_grad_()
        part = _one_way(leaf, columns.roll(-start, 0), inv_tau, answers, True) * share / (n * inv_tau)
        part.backward()
        assert columns.grad is not None
        total = total + part.detach()
        from_anchors.append(leaf.grad)
        from_samples.append(ranks.scattered(columns.grad))
    outputs: list[Tensor] = [*anchors, *samples]
    towards: list[Tensor | None] = [*from_anchors, *from_samples]
    if share < 1:
        direct = (1 - share) * _pair_loss(method, image, text, near) / n
        total = total + direct.detach()
        outputs.append(direct)
        towards.append(None)
    torch.autograd.backward(outputs, towards)
    return total
