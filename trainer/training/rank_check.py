"""Whether several processes make the same updates as one: losses and weights of both, side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from torch import Tensor

from trainer import config, data, device, models, pretrained, ranks
from trainer.data.tokenizer import train_tokenizer
from trainer.store import Workspace
from trainer.training.session import FitError, TrainingSession
from trainer.training.starting_point import prospective_start
from trainer.untrusted.terminal import say_json

UPDATES: Final = 20
EQUAL: Final = 1e-6
"""Largest difference of two losses that counts as rounding, of losses above 1 their share: float32 has seven digits."""
EQUAL_NORMS: Final = 1e-5
"""The same with batch norms, whose variances are sums of squares: rounding is larger."""

MakeSession = Callable[[ranks.Ranks | None], TrainingSession]


@dataclass(frozen=True)
class UpdateDifference:
    """The largest differences over all updates made.

    Attributes:
        loss: Of the losses; of those above 1 as a share of them.
        weights: Of the weights and buffers after the last update.
    """

    loss: float
    weights: float


@dataclass(frozen=True)
class RankCheck:
    """Updates by several processes, compared with the same ones by one.

    Attributes:
        ranks: How many processes.
        updates: How many were made.
        whole: Against the undivided batch.
        parts: Against micro-batches of as many pairs as a rank has; None where batch norms see these only.
        batch_norm: Whether the model or the objective has batch norms.
    """

    ranks: int
    updates: int
    whole: UpdateDifference
    parts: UpdateDifference | None
    batch_norm: bool

    @property
    def equal(self) -> bool:
        """Whether no loss differs by more than rounding; bits of micro-batches are equal whatever these differ by."""
        exact = self.parts is not None and self.parts.loss == 0
        return exact or self.whole.loss <= (EQUAL_NORMS if self.batch_norm else EQUAL)

    @property
    def words(self) -> str:
        """The result as one sentence."""
        summary = f"{self.ranks} processes and one made {self.updates} updates of the same batches: "
        if self.whole.loss == 0:
            return f"{summary}equal, no loss differs by one bit."
        verdict = "equal" if self.equal else "not equal"
        exact = " (by no bit from micro-batches of the same size)" if self.parts and self.parts.loss == 0 else ""
        return f"{summary}{verdict}, losses differ by at most {self.whole.loss:.1e}{exact}."


def check(make: MakeSession, shared: ranks.Ranks, updates: int = UPDATES) -> RankCheck | None:
    """Make updates on all ranks, then on rank 0 alone; return both compared, on other ranks None.

    Args:
        make: A new session at its first step, of these ranks or of one process.
        shared: This process and the others.
        updates: How many are made, at most as many as the run has.

    Raises:
        FitError: Loss or gradient is not finite.
    """
    training = make(shared)
    updates = min(updates, training.total_steps)
    together = _trace(training, updates)
    if not shared.leads:
        return None
    norms = any(models.has_batch_norm(module) for module in training.modules.values())
    whole = _difference(together, _trace(make(None), updates))
    parts = None
    if not norms:
        divided = make(None)
        divided.micro_batch = training.micro_batch or training.batch_size // shared.size
        parts = _difference(together, _trace(divided, updates))
    return RankCheck(shared.size, updates, whole, parts, norms)


def session_maker(run: config.Run, workspace_folder: Path, shared: ranks.Ranks) -> MakeSession:
    """Return what makes sessions of a run that is not in the workspace; only its prepared pairs are kept.

    Raises:
        UserError: The run cannot be trained; says why.
    """
    config.check(run)
    where = shared.device_of(device.choose(run.device))
    device.be_polite(where)
    cache = workspace_folder / "cache"

    def quiet(share: float, note: str) -> None:
        shared.check_peers()

    # Rank 0 prepares, then the others read what it has prepared.
    if not shared.leads:
        shared.announced("prepared")
    start = prospective_start(run, workspace_folder, quiet)
    sizes = start.sizes
    splits = data.load(
        run.data,
        image_size=sizes.image_size,
        workspace_folder=workspace_folder,
        progress=quiet,
        loading=run.loading,
        preprocessing=models.preprocessing_of(sizes),
    )
    if start.tokenizer is not None:
        tokenizer = start.tokenizer
    elif named := run.model.tokenizer.strip():
        tokenizer = pretrained.tokenizer_by_name(named, cache=cache, progress=quiet)
    else:
        assert isinstance(run.model, config.TinyTowers)
        tokenizer = train_tokenizer(splits.train.captions, run.model.vocabulary)
    if shared.leads:
        shared.announced("prepared", "yes")
    return lambda together: TrainingSession(
        run, splits.train, tokenizer, where, shared=together, **start.session_arguments
    )


def _trace(training: TrainingSession, updates: int) -> tuple[list[float], dict[str, Tensor]]:
    losses: list[float] = []
    for _ in range(updates):
        update = training.update()
        if not update.made:
            raise FitError(
                f"Loss or gradient of update {len(losses) + 1} is not finite, so nothing can be compared: choose a "
                "smaller learning rate or more warm-up."
            )
        losses.append(update.loss)
    weights = {f"{name}.{key}": value for name, m in training.modules.items() for key, value in m.state_dict().items()}
    return losses, {key: value.detach().double().cpu().clone() for key, value in weights.items()}


def _difference(
    one: tuple[list[float], dict[str, Tensor]], other: tuple[list[float], dict[str, Tensor]]
) -> UpdateDifference:
    losses = max((abs(a - b) / max(1.0, abs(b)) for a, b in zip(one[0], other[0], strict=True)), default=0.0)
    apart = [float((value - other[1][key]).abs().max()) for key, value in one[1].items() if value.numel()]
    return UpdateDifference(losses, max(apart, default=0.0))


def main(words: list[str]) -> int:
    """Check the run that the words give as TOML, as one of the ranks; rank 0 prints the result as JSON."""
    folder, text = words
    shared = ranks.join()
    assert shared is not None, "started by trainer.training.agent only"
    try:
        run = config.from_toml(text, source="the run to check")
        found = check(session_maker(run, Workspace(Path(folder)).folder, shared), shared)
        if found is not None:
            say_json(json.dumps(asdict(found) | {"equal": found.equal, "words": found.words}), flush=True)
    except Exception as error:
        shared.confess(str(error))
        if shared.leads:
            say_json(json.dumps({"problem": str(error)}), flush=True)
        return 1
    finally:
        shared.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
