"""Updates that are enqueued before the loss of the first is read, and images on the device: the same bits."""

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.trainer.training.conftest import TINY
from trainer import config
from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.training import device_images, fit
from trainer.training import session as session_module
from trainer.training.session import TrainingSession, Update, may_run_ahead

CPU = torch.device("cpu")


def session(
    objective: config.Objective | None = None, *, where: torch.device = CPU, **optimizer: object
) -> TrainingSession:
    pixels = np.random.default_rng(0).integers(0, 256, (48, 32, 32, 3), np.uint8)
    captions = [f"picture {at % 7} of {at % 5}" for at in range(48)]
    pairs = Pairs("random", "train", pixels, captions, [""] * 48, [""] * 48, {}, "")
    choice = replace(TINY.optimizer, batch_size=16, epochs=3, **optimizer)
    run = replace(TINY, objective=objective or config.Clip(), optimizer=choice)
    return TrainingSession(run, pairs, train_tokenizer(captions, 256), where)


def all_of(training: TrainingSession) -> Iterator[torch.Tensor]:
    """Yield the weights of a session, and what its optimizer keeps."""
    for module in training.modules.values():
        yield from module.state_dict().values()
    for kept in training.optimizer.state.values():
        yield from kept.values()


def ahead(training: TrainingSession, most: int) -> list[tuple[int, Update]]:
    training.runs_ahead = True
    found = []
    while training.step < training.total_steps and all(update.made for _, update in found):
        found += [(training.step, update) for update in training.updates(most)]
    return found


@pytest.mark.parametrize("micro", [0, 8])
def test_losses_weights_and_moments_are_those_of_one_at_a_time(micro: int):
    one, several = session(micro_batch=micro), session(micro_batch=micro)
    told = [one.update() for _ in range(one.total_steps)]
    # Five at a time would pass the end of the epoch, which has three steps.
    found = ahead(several, 5)
    assert [step for step, _ in found] == list(range(1, 10))
    for (_, update), other in zip(found, told, strict=True):
        same = ("loss", "gradient_norm", "learning_rate")
        assert [getattr(update, name) for name in same] == [getattr(other, name) for name in same]
    for mine, other in zip(all_of(several), all_of(one), strict=True):
        assert torch.equal(mine, other)
    assert several.optimizer.found_inf is None


def poison(training: TrainingSession, step: int) -> None:
    """Let the loss of the update after a step be NaN."""
    compare = training.method.compare

    def poisoned(embedded, batch):
        return compare(embedded, batch) * (torch.nan if batch.step == step else 1)

    training.method.compare = poisoned


def test_a_step_that_is_not_finite_changes_nothing_and_neither_do_those_behind_it():
    one, several = session(), session()
    poison(several, 4)
    # The batch norms of what is enqueued behind it have seen their batches; the run ends here.
    parameters = lambda training: [*training.towers.parameters(), *training.method.parameters()]  # noqa: E731
    for _ in range(4):
        assert one.update().made
    moments = copy.deepcopy([kept["exp_avg"] for kept in one.optimizer.state.values()])
    found = ahead(several, 3)
    assert [(step, update.made) for step, update in found] == [(1, True), (2, True), (3, True), (4, True), (4, False)]
    assert several.step == 4
    for mine, other in zip(parameters(several), parameters(one), strict=True):
        assert torch.equal(mine, other)
    for kept, other in zip(several.optimizer.state.values(), moments, strict=True):
        assert torch.equal(kept["exp_avg"], other)
        assert kept["step"] == 4


def test_a_card_s_optimizer_decides_whether_updates_run_ahead():
    gpu = torch.device("cuda")
    assert may_run_ahead(TINY.optimizer, gpu)
    assert not may_run_ahead(TINY.optimizer, CPU)
    assert not may_run_ahead(replace(TINY.optimizer, algorithm="lars"), gpu)
    found = list(session().updates(3))
    assert len(found) == 1, "a request to stop is heard after every step"


def test_images_that_lie_on_the_device_are_those_of_the_split(monkeypatch: pytest.MonkeyPatch):
    plain = session()
    monkeypatch.setattr(session_module, "fits", lambda images, where: True)
    kept = session()
    for _ in range(3):
        assert kept.update().loss == plain.update().loss
    images = np.random.default_rng(1).integers(0, 256, (9, 4, 4, 3), np.uint8)
    monkeypatch.setattr(device_images, "_COPIED_AT_ONCE", 100)
    for whole in (False, True):
        found = device_images.DeviceImages(images, CPU, resident=whole)
        found.begin(np.array([8, 0]))
        for rows in ([8, 0], [3, 3, 1]):
            np.testing.assert_array_equal(found.of(np.array(rows)).numpy(), images[rows])


@pytest.mark.slow
def test_a_run_that_is_read_late_has_the_curves_of_one_that_is_not(tiny, workspace, journal, monkeypatch):
    changes = {"watching.log_every": 3, "watching.evaluate_every": 4, "watching.checkpoint_every": 6}
    plain = tiny(name="read at once", **changes)
    fit.fit(workspace, plain)
    monkeypatch.setattr(session_module, "may_run_ahead", lambda *_: True)
    late = tiny(name="read late", **changes)
    fit.fit(workspace, late)
    assert workspace.runs.get(late).status == "finished"
    one, other = journal(plain), journal(late)
    assert list(one) == list(other)
    for step, values in one.items():
        same = [name for name in values if name.startswith("val/") or name in ("train/loss", "train/inv_tau")]
        assert [values[name] for name in same] == [other[step][name] for name in same], step
    assert [row.step for row in workspace.results.checkpoints(plain)] == [
        row.step for row in workspace.results.checkpoints(late)
    ]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("whole", [True, False])
def test_a_gpu_is_not_waited_for_between_updates(whole: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_module, "fits", lambda images, where: whole)
    monkeypatch.setattr(session_module, "AHEAD_S", 1e9)  # the first updates of a process are slow
    one, several = (session(where=torch.device("cuda")) for _ in range(2))
    told = [one.update().loss for _ in range(one.total_steps)]
    assert several.runs_ahead
    found = [update.loss for update in several.updates(3)]
    torch.cuda.set_sync_debug_mode("error")
    try:
        updates = several.updates(3)
        monkeypatch.setattr(torch, "stack", _reading(torch.stack))
        found += [update.loss for update in updates]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert found == pytest.approx(told[:6], rel=1e-2)


def _reading(stack):
    """Return `torch.stack` that ends the prohibition to wait where the losses of several updates are read."""

    def stacked(parts, *rest, **named):
        if isinstance(parts, list):
            torch.cuda.set_sync_debug_mode("default")
        return stack(parts, *rest, **named)

    return stacked


@pytest.mark.slow
def test_compiled_towers_learn_what_others_learn(monkeypatch: pytest.MonkeyPatch):
    compiled_by, real = [], torch.compile

    def without_machine_code(function, *, mode):
        """Trace and compile, but leave out the minutes in which a C++ compiler runs."""
        compiled_by.append(mode)
        return real(function, backend="aot_eager")

    monkeypatch.setattr(torch, "compile", without_machine_code)
    pixels = np.random.default_rng(0).integers(0, 256, (48, 32, 32, 3), np.uint8)
    captions = [f"picture {at % 7} of {at % 5}" for at in range(48)]
    pairs = Pairs("random", "train", pixels, captions, [""] * 48, [""] * 48, {}, "")
    vit = replace(TINY.model, image_tower="vit", image_width=32, image_layers=1, text_layers=2)
    run = replace(TINY, model=vit, optimizer=replace(TINY.optimizer, batch_size=16, epochs=3))
    plain, compiled = (
        TrainingSession(replace(run, compile=how), pairs, train_tokenizer(captions, 256), CPU)
        for how in ("off", "reduce-overhead")
    )
    # The image tower as one, and each of the text tower's two blocks.
    assert compiled_by == ["reduce-overhead"] * 3
    for _ in range(2):
        assert compiled.update().loss == pytest.approx(plain.update().loss, abs=1e-5)
    assert list(compiled.towers.state_dict()) == list(plain.towers.state_dict())
