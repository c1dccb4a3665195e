"""Whether several processes make the same updates as one: losses and weights of both, side by side."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor

from trainer import config, data, device, methods, models, pretrained, ranks
from trainer.data.tokenizer import train_tokenizer
from trainer.store import Workspace
from trainer.training.session import FitError, TrainingSession, Update
from trainer.training.starting_point import prospective_start
from trainer.untrusted.terminal import say_json

UPDATES: Final = 20
EQUAL: Final = 1e-6
"""Largest difference of two losses that counts as rounding, of losses above 1 their share: float32 has seven digits."""
EQUAL_NORMS: Final = 1e-5
"""The same with batch norms, whose variances are sums of squares: rounding is larger."""

EQUAL_GRADIENTS: Final = 1e-3
"""Largest difference of two gradients, as a share, that counts as rounding where float64 is not asked."""
_ROUNDINGS: Final = 10.0
"""So many times its own rounding may one gradient be off from another."""
_TINY: Final = 1e-30

MakeSession = Callable[[ranks.Ranks | None], TrainingSession]


@dataclass(frozen=True)
class UpdateDifference:
    """The largest differences over all updates made, each from the same weights."""

    loss: float  # Of the losses; of those above 1 as a share of them.
    weights: float  # Of the weights and buffers after an update.
    gradients: float = 0.0  # Of the lengths of the gradients as a share, or of their directions, whichever is larger.


@dataclass(frozen=True)
class RankCheck:
    """Updates by several processes, compared with the same ones by one."""

    ranks: int  # How many processes.
    updates: int  # How many were made.
    whole: UpdateDifference  # Against the undivided batch.
    # Against micro-batches of as many pairs as a rank has; None where batch norms see these only.
    parts: UpdateDifference | None
    batch_norm: bool  # Whether the model or the objective has batch norms.
    # By how much one process's own gradient in float32 is off from float64; 0 where that was not needed.
    rounding: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether nothing differs by more than rounding; bits of micro-batches are equal whatever these differ by."""
        if self.parts is not None and self.parts.loss == self.parts.gradients == 0:
            return True
        alike = self.whole.gradients <= max(EQUAL_GRADIENTS, _ROUNDINGS * self.rounding)
        return alike and self.whole.loss <= (EQUAL_NORMS if self.batch_norm else EQUAL)

    @property
    def words(self) -> str:
        """The result as one sentence."""
        summary = f"{self.ranks} processes and one made {self.updates} updates of the same batches: "
        if self.whole.loss == 0 and self.equal:
            return f"{summary}equal, no loss differs by one bit."
        verdict = "equal" if self.equal else "not equal"
        exact = " (by no bit from micro-batches of the same size)" if self.parts and self.parts.loss == 0 else ""
        gradients = f"gradients by {self.whole.gradients:.1e}"
        return f"{summary}{verdict}, losses differ by at most {self.whole.loss:.1e}{exact}, {gradients}."


def check(make: MakeSession, shared: ranks.Ranks, updates: int = UPDATES) -> RankCheck | None:
    """Make updates on all ranks, then on rank 0 alone; return both compared, on other ranks None.

    Args:
        make: A new session at its first step, of these ranks or of one process.
        updates: How many are made, at most as many as the run has.

    Raises:
        FitError: Loss or gradient is not finite.
    """
    training = make(shared)
    updates = min(updates, training.total_steps)
    norms = any(models.has_batch_norm(module) for module in training.modules.values())
    others = [make(None) for _ in range(1 if norms else 2)] if shared.leads else []
    for divided in others[1:]:
        divided.micro_batch = training.micro_batch or training.batch_size // shared.size
    differences, rounding = [[UpdateDifference(0.0, 0.0)] for _ in others], 0.0
    for _ in range(updates):
        # From the same weights, for a steep start amplifies what the last bits of two updates differ by.
        start = _state(training) if others else {}
        made = _made(training)
        for other, measured in zip(others, differences, strict=True):
            _restore(other, start)
            measured.append(_difference((training, made), (other, _made(other))))
        if others and differences[0][-1].gradients > EQUAL_GRADIENTS:
            rounding = max(rounding, _rounding(others[0], start))
    if not shared.leads:
        return None
    undivided, *parts = (UpdateDifference(*map(max, zip(*map(astuple, measured)))) for measured in differences)
    return RankCheck(shared.size, updates, undivided, parts[0] if parts else None, norms, rounding)


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


def _made(training: TrainingSession) -> Update:
    """Make an update.

    Raises:
        FitError: It is not finite.
    """
    update = training.update()
    if not update.made:
        raise FitError(
            f"Loss or gradient of update {training.step + 1} is not finite, so nothing can be compared: choose a "
            "smaller learning rate or more warm-up."
        )
    return update


def _state(training: TrainingSession) -> dict[str, Any]:
    """Return a copy of all that an update starts from."""
    modules = {name: module.state_dict() for name, module in training.modules.items()}
    return copy.deepcopy({"modules": modules, "optimizer": training.optimizer.state_dict(), "step": training.step})


def _restore(training: TrainingSession, start: dict[str, Any]) -> None:
    for name, module in training.modules.items():
        module.load_state_dict(start["modules"][name])
    training.optimizer.load_state_dict(copy.deepcopy(start["optimizer"]))
    training.step = start["step"]


def _difference(first: tuple[TrainingSession, Update], other: tuple[TrainingSession, Update]) -> UpdateDifference:
    """Return how far two sessions are from each other after the same update."""
    (session, update), (other_session, other_update) = first, other
    loss = abs(update.loss - other_update.loss) / max(1.0, abs(other_update.loss))
    norm = abs(update.gradient_norm - other_update.gradient_norm) / max(other_update.gradient_norm, _TINY)
    turned = float((_direction(session) - _direction(other_session)).norm())
    pairs = zip(session.modules.values(), other_session.modules.values(), strict=True)
    weights = [
        float((value.double() - other_value.double()).abs().max())
        for module, other_module in pairs
        for value, other_value in zip(module.state_dict().values(), other_module.state_dict().values(), strict=True)
        if value.numel()
    ]
    return UpdateDifference(loss, max(weights, default=0.0), max(norm, turned))


def _direction(training: TrainingSession) -> Float[Tensor, " n"]:
    """Return the gradient of an update as a unit vector, in float64 on the CPU."""
    parameters = (parameter for group in training.optimizer.param_groups for parameter in group["params"])
    parts = [parameter.grad.double().cpu().reshape(-1) for parameter in parameters if parameter.grad is not None]
    flat = torch.cat(parts) if parts else torch.zeros(1, dtype=torch.float64)
    return flat / flat.norm().clamp(min=_TINY)


def _rounding(training: TrainingSession, start: dict[str, Any]) -> float:
    """Return by how much the direction of one process's gradient is off from that in float64."""
    narrow = _direction(training)
    _restore(training, start)
    towers, method = copy.deepcopy((training.towers, training.method))
    towers.double().train()
    method.double().train()
    batch = training.batch()
    views = {name: view.double() for name in ("images", "other_view") if (view := getattr(batch, name)) is not None}
    methods.backward(method, towers, replace(batch, **views), autocast=contextlib.nullcontext)
    grads = {name: parameter.grad for module in (towers, method) for name, parameter in _named(module)}
    named = [(name, parameter) for module in (training.towers, training.method) for name, parameter in _named(module)]
    order = {id(parameter): name for name, parameter in named}
    learned = [parameter for group in training.optimizer.param_groups for parameter in group["params"]]
    gradients = (grads[order[id(parameter)]] for parameter in learned if parameter.grad is not None)
    flat = torch.cat([gradient.double().cpu().reshape(-1) for gradient in gradients if gradient is not None])
    return float((narrow - flat / flat.norm().clamp(min=_TINY)).norm())


def _named(module: torch.nn.Module) -> list[tuple[str, torch.nn.Parameter]]:
    return [(f"{type(module).__name__}.{name}", parameter) for name, parameter in module.named_parameters()]


def main(arguments: list[str]) -> int:
    """Check the run that the words give as TOML, as one of the ranks; rank 0 prints the result as JSON."""
    folder, text = arguments
    shared = ranks.join()
    assert shared is not None, "started by trainer.training.agent only"
    try:
        run = config.from_toml(text, source="the run to check")
        result = check(session_maker(run, Workspace(Path(folder)).folder, shared), shared)
        if result is not None:
            say_json(json.dumps(asdict(result) | {"equal": result.equal, "words": result.words}), flush=True)
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
