"""Checks of what trains on a card, on the stand-in: `python on_card.py LIBRARY ANSWERS` writes {check: problem or ""}.

A process of its own, because the library is loaded before torch.
"""

import ctypes
import functools
import json
import math
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)

import numpy as np
import pytest
import torch

from tests.trainer.device import stand_in
from tests.trainer.device.stand_in import CPU, CUDA, WAITS, card
from trainer import config, device, methods
from trainer.checkpoints import checkpoint
from trainer.errors import UserError
from trainer.inference.batches import embed_images
from trainer.losses import info_nce
from trainer.methods import image_text
from trainer.methods.image_text import ClipPairs
from trainer.store import Workspace
from trainer.training import gpu_bench
from trainer.training import optimizer as optimizer_module
from trainer.training import session as session_module
from trainer.training.fit import fit
from trainer.training.metric_logger import MetricLogger
from trainer.training.session import TrainingSession
from trainer.training.small_sessions import OBJECTIVES, TINY, TRANSFORMER, UPDATES, session

HALF = {torch.float16, torch.bfloat16}
WAITS_A_READING = dict.fromkeys(OBJECTIVES, 1)
"""Waits of the program for the card in the updates of an epoch, which are enqueued before the first is read."""
WAITS_A_CLUSTERING = 4 * config.Pcl().clusterings
"""When PCL clusters all images at the beginning of an epoch and measures it, beside one a round of k-means."""

Check = Callable[[], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """List a check by its name."""
    CHECKS[function.__name__.replace("_", " ")] = function
    return function


@contextmanager
def patched(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Set attributes while it is entered."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)


def objective_check(name: str) -> Check:
    """Return the check of an objective: the CPU's losses, no wait but to read them, and finite under half types."""

    def run() -> None:
        on_cpu = session(name, CPU)
        losses = [on_cpu.update().loss for _ in range(2 * UPDATES)]
        with card():
            training = session(name, CUDA)
            assert training.runs_ahead
            updates = list(training.updates(UPDATES))
            WAITS.clear()
            updates += training.updates(UPDATES)
            waits = Counter(WAITS)
        on_card = [update.loss for update in updates]
        np.testing.assert_allclose(on_card, losses, rtol=1e-3, atol=2e-4)
        files = ("methods/clusters.py", "methods/pcl.py")
        epoch = {key: count for key, count in waits.items() if any(file in key[1] for file in files)}
        assert waits.total() - sum(epoch.values()) == WAITS_A_READING[name], dict(waits)
        assert sum(count for (kind, _), count in epoch.items() if kind != "tolist") <= WAITS_A_CLUSTERING, epoch
        _check_half(name)

    return run


def _check_half(name: str) -> None:
    """Check an update whose towers compute in bfloat16, and one in float16, and that no loss does."""
    with card(bfloat16=True):
        training = session(name, CUDA, TRANSFORMER)
        for dtype in (torch.bfloat16, torch.float16):
            half = functools.partial(torch.autocast, "cuda", dtype=dtype)
            with patched((device, "autocast", lambda _, half=half: half())), stand_in.traced() as operations:
                update = training.update()
            assert update.made, (dtype, update)
            types = [dtypes for _, dtypes, _ in operations]
            assert any(dtype in dtypes for dtypes in types) or name == "word2vec", "autocast was off"
            narrow = {
                (operation, line)
                for operation, dtypes, line in operations
                if dtypes & HALF and "losses/" in line and operation != "_to_copy"
            }
            assert not narrow, narrow


CHECKS |= {f"losses and waits of {name}": objective_check(name) for name in OBJECTIVES}


@check
def every_objective_is_checked() -> None:
    assert {type(objective) for objective in OBJECTIVES.values()} == set(methods.METHODS) - {config.EmbeddingDecoder}


@check
def emulated_bfloat16_is_not_trained_in() -> None:
    with card(bfloat16=False), device.autocast(CUDA):
        assert torch.cuda.is_bf16_supported()
        assert (torch.ones(2, 2, device=CUDA) @ torch.ones(2, 2, device=CUDA)).dtype == torch.float32
    with card(bfloat16=True), device.autocast(CUDA):
        assert (torch.ones(2, 2, device=CUDA) @ torch.ones(2, 2, device=CUDA)).dtype == torch.bfloat16


@check
def what_is_measured_is_float32_and_sent_from_pinned_memory() -> None:
    images = np.random.default_rng(1).integers(0, 256, (20, 32, 32, 3), np.uint8)
    expected = embed_images(session("clip", CPU).towers.eval(), images, CPU)
    with card(bfloat16=True):
        towers = session("clip", CUDA).towers.eval()
        WAITS.clear()
        found = embed_images(towers, images, CUDA)
        assert [kind for kind, _ in WAITS] == ["read back"], WAITS
    np.testing.assert_allclose(found, expected, atol=1e-5)


@check
def a_checkpoint_waits_once_for_all_its_tensors() -> None:
    with card(), tempfile.TemporaryDirectory() as folder:
        training = session("clip", CUDA)
        training.update()
        state = {"step": 1, "optimizer": training.optimizer.state_dict()}
        WAITS.clear()
        saved = checkpoint.save(Path(folder), modules=training.modules, training=state, tokenizer="{}")
        # Once for the weights and once for the moments.
        assert WAITS.total() == 2, dict(WAITS)
        loaded = checkpoint.load(saved)
        for name, value in training.towers.state_dict().items():
            assert torch.equal(loaded.weights[f"towers.{name}"], stand_in.opened(value))


RUN = replace(
    TINY,
    optimizer=replace(TINY.optimizer, batch_size=64, warmup_steps=4),
    watching=config.Watching(log_every=1, evaluate_every=6, snapshots=2, checkpoint_every=4),
)
"""Twelve steps, of which runs of the whole loop have their losses compared."""


@functools.cache
def _workspace() -> Workspace:
    return Workspace(Path(tempfile.mkdtemp(prefix="card-")))


def _created(**changes: Any) -> int:
    run = RUN
    for field, value in changes.items():
        run = config.replace(run, field.replace("__", "."), str(value))
    return _workspace().runs.create(run)


def _curves(run_id: int) -> dict[int, dict[str, float]]:
    curves: dict[int, dict[str, float]] = {}
    for line in (_workspace().runs.get(run_id).folder / "metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        curves.setdefault(entry["step"], {}).update(entry["values"])
    return curves


@contextmanager
def _stopped_after(updates: int) -> Iterator[None]:
    """Ask this process to stop after so many updates."""
    follow, made = TrainingSession._follow, []

    def counted(training: TrainingSession, *discarded: Any) -> None:
        follow(training, *discarded)
        made.append(1)
        if len(made) == updates:
            os.kill(os.getpid(), signal.SIGTERM)

    with patched((TrainingSession, "_follow", counted)):
        yield


@check
def a_whole_run_that_was_stopped_and_resumed_has_the_curves_of_the_cpu() -> None:
    on_cpu, on_card = _created(), _created(device="cuda")
    fit(_workspace(), on_cpu)
    with card(memory=1 << 16):  # too little for the images, which are copied ahead of their step
        with _stopped_after(7):
            fit(_workspace(), on_card)
        row = _workspace().runs.get(on_card)
        assert (row.status, row.step) == ("stopped", 7), row
        fit(_workspace(), on_card)
    assert _workspace().runs.get(on_card).status == "finished"
    expected, found = _curves(on_cpu), _curves(on_card)
    assert expected.keys() == found.keys()
    for step, values in expected.items():
        for name in ("train/loss", "train/gradient_norm", "train/inv_tau"):
            if name in values:
                np.testing.assert_allclose(found[step][name], values[name], rtol=1e-3, err_msg=f"{name} at {step}")


@check
def a_run_waits_once_for_each_row_of_its_curves() -> None:
    run_id = _created(
        device="cuda", watching__log_every=4, watching__evaluate_every=1000, watching__checkpoint_every=1000
    )
    marks: dict[int, Counter[tuple[str, str]]] = {}
    saw = MetricLogger.saw

    def marked(recorder: MetricLogger, update: Any) -> None:
        saw(recorder, update)
        marks[recorder._training.step] = Counter(WAITS)

    with card(), patched((MetricLogger, "saw", marked)):
        fit(_workspace(), run_id)
    assert (marks[8] - marks[4]).total() == 1, marks[8] - marks[4]


@check
def a_loss_that_is_not_a_number_ends_a_run_in_words_and_it_resumes() -> None:
    run_id = _created(device="cuda", watching__log_every=12, watching__evaluate_every=12)
    compare = ClipPairs.compare

    def poisoned(method: ClipPairs, embedded: Any, batch: methods.Batch) -> torch.Tensor:
        return compare(method, embedded, batch) * (math.nan if batch.step == 5 else 1)

    with card():
        with patched((ClipPairs, "compare", poisoned)):
            problem = _problem_of(lambda: fit(_workspace(), run_id))
        assert "became nan in the update after step 5" in problem, problem
        assert "step 4 is still valid" in problem, problem
        fit(_workspace(), run_id)
    assert _workspace().runs.get(run_id).status == "finished"


@check
def memory_that_runs_out_is_told_with_a_micro_batch_that_fits() -> None:
    run_id = _created(device="cuda", watching__evaluate_every=12)
    compare = ClipPairs.compare

    def starved(method: ClipPairs, embedded: Any, batch: methods.Batch) -> torch.Tensor:
        if batch.step == 5:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return compare(method, embedded, batch)

    with card():
        with patched((ClipPairs, "compare", starved)):
            problem = _problem_of(lambda: fit(_workspace(), run_id))
        assert "Memory ran out with batches of 64 pairs" in problem, problem
        assert "Set Micro-batch to 32, which is predicted to fit" in problem, problem
    assert checkpoint.steps(_workspace().runs.get(run_id).folder / "checkpoints") == [4, 0]


@check
def an_unknown_card_is_measured_and_compared_with_what_was_predicted() -> None:
    size = gpu_bench.BenchSize((32,), 16, {"tiny": 8}, 2, 1, 64, ("cloob", "pcl"))
    with card(bfloat16=True, memory=1 << 24):
        found = gpu_bench.bench(CUDA, size, lambda share, note: None, minutes=1e6)
    cloob, pcl = found.waits
    assert (cloob.objective, cloob.found, cloob.predicted) == ("cloob", 1, 1)
    assert pcl.found is not None
    assert 1 < pcl.found <= 41
    assert found.memory[0].predicted_mib, found.memory
    assert {one.form for one in found.losses} == {"dense", "tiled"}
    for one in found.losses:
        assert one.seconds, one
        assert (one.error or 1) < 0.02, one  # of the largest: five roundings of bfloat16
    assert found.steps[0].towers == "tiny"
    assert found.resume_equal
    assert (found.device, found.capability, found.bfloat16) == ("stand-in", "9.0", True)
    assert not found.failures, found.failures
    assert found.out_of_memory == "2,048 pairs fitted"


@check
def a_wait_that_was_not_predicted_is_seen_on_an_unknown_card() -> None:
    planted = _compared_with(lambda embedded, batch, loss: loss + 0 * loss.detach().item())
    with card(), patched(planted):
        found = gpu_bench.waits_of("clip", CUDA, gpu_bench.Stopwatch(8))
    assert (found.found, found.predicted) == (1 + UPDATES, 1)


def _problem_of(action: Check) -> str:
    with pytest.raises(UserError) as problem:
        action()
    return str(problem.value)


def _waits_of_planted(*changes: tuple[Any, str, Any]) -> int:
    """Return the waits in three updates of CLIP with something changed, which are read together."""
    with card(), patched(*changes):
        training = session("clip", CUDA)
        WAITS.clear()
        list(training.updates(UPDATES))
        return WAITS.total()


def _compared_with(change: Callable[[Any, methods.Batch, torch.Tensor], torch.Tensor]) -> tuple[Any, str, Any]:
    compare = ClipPairs.compare

    def planted(method: ClipPairs, embedded: Any, batch: methods.Batch) -> torch.Tensor:
        return change(embedded, batch, compare(method, embedded, batch))

    return ClipPairs, "compare", planted


def _refused(*changes: tuple[Any, str, Any]) -> str:
    with pytest.raises(RuntimeError) as refusal:
        _waits_of_planted(*changes)
    return str(refusal.value)


@check
def a_tensor_on_the_cpu_is_refused() -> None:
    planted = _compared_with(
        lambda embedded, _, loss: loss + (torch.ones(len(embedded[0])) * embedded[0].sum(1)).mean()
    )
    assert "cuda:0 and on the CPU" in _refused(planted)


@check
def a_batch_that_was_not_moved_is_refused() -> None:
    stayed = lambda values, where: torch.from_numpy(values) if isinstance(values, np.ndarray) else values  # noqa: E731
    assert "cuda:0 and on the CPU" in _refused((device, "sent", stayed))


@check
def a_generator_of_the_cpu_is_refused_on_the_card() -> None:
    def noisy(embedded: Any, _: Any, loss: torch.Tensor) -> torch.Tensor:
        rows = embedded[0]
        return loss + 0 * torch.randn(rows.shape, device=rows.device, generator=torch.Generator().manual_seed(1)).sum()

    assert "generator" in _refused(_compared_with(noisy))


@check
def a_forgotten_wait_for_another_stream_is_refused() -> None:
    planted = patched((stand_in.Stream, "wait_stream", lambda *_: None))
    with card(memory=1 << 16), planted, pytest.raises(RuntimeError, match="another stream"):
        list(session("clip", CUDA).updates(UPDATES))


@check
def an_item_and_a_mask_as_an_index_are_counted() -> None:
    def read(_: Any, __: Any, loss: torch.Tensor) -> torch.Tensor:
        loss.item()
        return loss

    def masked(embedded: Any, _: Any, loss: torch.Tensor) -> torch.Tensor:
        rows = embedded[0]
        return loss + 0 * rows[torch.ones(len(rows), dtype=torch.bool, device=rows.device)].sum()

    def assigned(embedded: Any, _: Any, loss: torch.Tensor) -> torch.Tensor:
        table = embedded[0].detach().clone()
        first = torch.zeros(1, dtype=torch.long, device=table.device)
        table[first, first] = 0.0
        return loss + 0 * table.sum()

    assert _waits_of_planted() == 1
    assert _waits_of_planted(_compared_with(read)) == 1 + UPDATES
    assert _waits_of_planted(_compared_with(assigned)) > UPDATES
    assert _waits_of_planted(_compared_with(masked)) > UPDATES


@check
def an_upload_that_is_not_pinned_is_counted() -> None:
    def pageable(values: Any, where: torch.device) -> torch.Tensor:
        return (torch.from_numpy(values) if isinstance(values, np.ndarray) else values).to(where)

    assert _waits_of_planted((device, "sent", pageable)) > UPDATES


@check
def a_norm_that_is_read_back_at_every_step_is_seen() -> None:
    clip = optimizer_module.clip_gradients
    read = lambda parameters, limit: clip(parameters, limit).cpu()  # noqa: E731
    assert "on the CPU" in _refused((optimizer_module, "clip_gradients", read))


@check
def a_loss_without_its_cast_is_seen() -> None:
    plain = info_nce.__wrapped__  # type: ignore[attr-defined]
    with card(bfloat16=True), patched((image_text, "info_nce", plain)), stand_in.traced() as operations:
        session("clip", CUDA).update()
        assert any(dtypes & HALF and "losses/" in line for _, dtypes, line in operations)


def main(answers: Path, *names: str) -> None:
    """Run these checks, or all; write what is wrong. One that fails does not end those behind it."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    session_module.AHEAD_S = 1e9  # a slow computer reads no more often
    device.be_polite = lambda _: None
    problems = {}
    for name, function in CHECKS.items():
        if names and name not in names:
            continue
        began = time.process_time()
        try:
            function()
            problems[name] = ""
        except Exception:
            problems[name] = traceback.format_exc()
        print(f"{name}: {time.process_time() - began:.1f} s", flush=True)
    answers.write_text(json.dumps(problems))


if __name__ == "__main__":
    main(Path(sys.argv[2]), *sys.argv[3:])
