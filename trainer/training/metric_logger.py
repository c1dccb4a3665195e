"""Record a training run: curves, evaluations, snapshots, checkpoints, and log lines."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from trainer import config, plugins
from trainer.alerts import BEST, WORDS, AlertWatch, Change
from trainer.analysis.quantities import duration
from trainer.checkpoints import checkpoint
from trainer.data import DataSplits
from trainer.data.pairs import BATCH
from trainer.data.tokenizers import AnyTokenizer
from trainer.evaluation import Embedded, HeldOut, NeighborReference
from trainer.evaluation.measurement import measurement_of
from trainer.evaluation.questions import of_reference
from trainer.evaluation.reference import REFERENCE
from trainer.metrics import headline, split_label
from trainer.scheduling.energy import METRIC, EnergyMeter
from trainer.store import EVALUATING, RunLog, crash_points
from trainer.store.question import Question
from trainer.store.run_log import seconds_left
from trainer.training import system_metrics
from trainer.training.control import ControlFlags
from trainer.training.disk_guard import DiskGuard
from trainer.training.forgetting_watch import ForgettingWatch
from trainer.training.optimizer import warmup_of
from trainer.training.session import FitError, TrainingSession, Update
from trainer.training.text_log import TextLog

TRAINING: Final = "training"
"""Phase of a run that makes updates; before it come the phases of preparing the data."""

_Written = TypeVar("_Written")

SAY_S: Final = 3.0
"""How long a preparation goes on between two lines about it, an evaluation until the first."""

FEW_MEASURED_FIRST: Final = 2_048
"""Held-out pairs that are measured before the first update; more of them wait for the losses of `FIRST_UPDATES`."""

FIRST_UPDATES: Final = 10

REST_S: Final = 0.2
"""How soon a paused run notices that it may go on."""


@dataclass
class _Pace:
    """Sums over the updates since the last row of the curves."""

    updates: int = 0
    seconds: float = 0.0
    data_s: float = 0.0

    def add(self, update: Update) -> None:
        self.updates += 1
        self.seconds += update.seconds
        self.data_s += update.data_s


@dataclass
class _Session:
    """The start of training in this session, for the time estimate: the first update, which compiles, is none of it."""

    step: int
    began: float | None = None

    def eta_s(self, step: int, total_steps: int) -> float | None:
        if self.began is None:
            if step > self.step:
                self.step, self.began = step, time.monotonic()
            return None
        return seconds_left(step - self.step, time.monotonic() - self.began, total_steps - step)


@dataclass
class _Evaluation:
    """What was measured at one step."""

    step: int
    # Prefix of a held-out split -> its logged numbers, by their full names.
    numbers: dict[str, dict[str, float]] = field(default_factory=dict)
    # Split -> what is noted of its retrieval: `Question.noted_counts`.
    asking: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def all_numbers(self) -> dict[str, float]:
        return {name: value for numbers in self.numbers.values() for name, value in numbers.items()}

    def add(self, heldout: HeldOut, numbers: Mapping[str, float], questions: Mapping[str, Question]) -> None:
        self.numbers[heldout.prefix] = {f"{heldout.prefix}/{name}": value for name, value in numbers.items()}
        if retrieval := questions.get("retrieval"):
            self.asking[_noted_split(heldout)] = retrieval.noted_counts


def _noted_split(heldout: HeldOut) -> str:
    """Return what the facts of a run call a split: a reference set may have a split of the same name as its own."""
    return REFERENCE if heldout.prefix == REFERENCE else heldout.pairs.split


class MetricLogger:
    """Monitors one training session; everything it writes goes through the run's log."""

    def __init__(
        self,
        log: RunLog,
        run: config.Run,
        *,
        text_log: TextLog,
        room: DiskGuard,
        give_up: Callable[[], None] = lambda: None,
        used_wh: float = 0.0,
    ) -> None:
        """Create it without evaluating anything.

        Args:
            text_log: Lines for the person.
            room: Waits for a full disk.
            give_up: Called while the untrained model is measured; raises where that is to end at once.
            used_wh: Energy of the cards in earlier sessions, also of steps that are made again.
        """
        self._log, self._used_wh = log, used_wh
        self._room = room
        self._give_up = give_up
        self._run = run
        self._text_log = text_log
        self._checkpoints: Path = log.folder / "checkpoints"
        self._heldout: list[HeldOut] = []
        self._batch: HeldOut | None = None
        self._reference: NeighborReference | None = None
        self._headline = headline(run)
        self._tokenizer = ""
        self._best: float | None = None
        self._best_step: int | None = None
        self._saved_step: int | None = None
        self._evaluation: _Evaluation | None = None
        self._untrained: dict[str, dict[str, Tensor]] | None = None
        self._measures_untrained_at = 0
        self._noted_asking: dict[str, dict[str, int]] = {}
        self._forgetting = ForgettingWatch(log.folder)
        self._pace = _Pace()
        self._session = _Session(0)

    def watch(
        self, training: TrainingSession, splits: DataSplits, tokenizer: AnyTokenizer, *, with_batch: bool = True
    ) -> None:
        """Set the session, and the splits to evaluate on: the first is `val`, the others keep their names.

        Args:
            with_batch: Whether the pairs of the first step are embedded beside the held-out ones.
        """
        self._training = training
        total = training.total_steps
        size = self._run.optimizer.batch_size
        self._measurement = measurement_of(training.method, training.device, batch_size=size)
        if self._evaluation is None:
            warmup = warmup_of(self._run.optimizer, total)
            limits, earlier = training.method.inv_tau_limits, self._log.run
            best = earlier.facts.get(BEST)
            self._alarms = AlertWatch(self._log.folder, warmup, limits, best=best, raised=earlier.alerts)
        self._log.memory = lambda: system_metrics.memory(training.device)
        self._energy = EnergyMeter(lambda: system_metrics.cards_of(training.device), used_wh=self._used_wh)
        mixes = set(self._run.tuning.percents) if self._run.tuning.mix else None
        self._snapshot_steps = mixes or self._run.watching.snapshot_steps(total)
        self._tokenizer = tokenizer.to_json()
        self._heldout = []
        length = training.architecture.context_length
        self._reference = None
        if self._measurement.makes_embeddings:
            self._reference = NeighborReference(
                splits.train, tokenizer=tokenizer, context_length=length, total=splits.training_pairs
            )
        for split, pairs in splits.heldout.items():
            prefix = split if self._heldout else "val"
            suite = splits.reference_suite if split == REFERENCE else splits.suite
            self._heldout.append(HeldOut(pairs, prefix=prefix, suite=suite, tokenizer=tokenizer, context_length=length))
        if with_batch and self._run.objective.compares_pairs:
            batch = training.first_batch()
            self._batch = HeldOut(batch, prefix=BATCH, suite=None, tokenizer=tokenizer, context_length=length)

    def measure_untrained(self) -> None:
        """Measure the untrained model on splits not measured yet, before `begin`, which does not measure it again."""
        if self._evaluation is None:
            self._room.until_written(lambda: self._log.rewind(-1))
        self._measure()

    def begin(self) -> None:
        """Resume from the newest valid checkpoint; without one, evaluate and save the untrained model.

        Of many held-out pairs the evaluation waits until some updates are made. A run that ends before that is
        measured when it is resumed.
        """
        loaded, complaints = checkpoint.newest(self._checkpoints)
        for complaint in complaints:
            self._text_log.say(f"{complaint} Returning to {f'step {loaded.step}' if loaded else 'the start'}.")
        if loaded:
            checkpoint.restore(loaded, modules=self._training.modules, optimizer=self._training.optimizer)
            self._training.step = self._saved_step = loaded.step
            self._best, self._best_step = loaded.training["best"], loaded.training["best_step"]
            self._text_log.say(f"continuing from the checkpoint of step {loaded.step}")
        for damaged in checkpoint.remove_after(self._checkpoints, self._training.step):
            self._log.drop_checkpoint(damaged)
        measured, waits = self._evaluation is not None, self._untrained_waits
        is_new = loaded is None or (waits and loaded.step == 0 and self._best is None)
        # Without a checkpoint the untrained model is measured anew too: nothing may be there twice.
        if not measured:
            self._room.until_written(lambda: self._log.rewind(-1 if is_new else self._training.step))
        # A kill may have come between the last checkpoint and the removal of those that it made needless.
        self._prune()
        self._log.kept_checkpoints(checkpoint.folders(self._checkpoints), best=self._best_step)
        self._session = _Session(self._training.step)
        self._report(TRAINING)
        if measured:
            self._snapshot_batch()
        elif is_new and waits:
            self._measures_untrained_at = min(FIRST_UPDATES, self._updates_until_measured)
            self._untrained = self._training.copied_weights()
        elif is_new:
            self._measure()
        if not loaded:
            self.save()

    def forget_untrained(self) -> None:
        """Remove what was measured of the untrained model: without the rest it is of no use."""
        self._room.until_written(lambda: self._log.rewind(-1))

    @property
    def updates_until_due(self) -> int:
        """Updates up to the next that is logged, evaluated or saved, itself included."""
        step, each = self._training.step, self._run.watching.log_every
        due = [self._updates_until_measured, each - step % each]
        return min(due if self._untrained is None else [*due, self._measures_untrained_at - step])

    @property
    def _updates_until_measured(self) -> int:
        step, watching = self._training.step, self._run.watching
        due = [step - step % each + each for each in (watching.evaluate_every, watching.checkpoint_every)]
        return min(at for at in [self._training.total_steps, *due, *self._snapshot_steps] if at > step) - step

    @property
    def _untrained_waits(self) -> bool:
        """Whether the untrained model is measured after the first updates."""
        pairs = sum(len(heldout.pairs) for heldout in self._heldout)
        return pairs > FEW_MEASURED_FIRST and not self._run.tuning.mix and self._training.total_steps > 0

    def _measure_untrained_later(self) -> None:
        """Measure the untrained model as step 0, if that had to wait, and restore the present weights."""
        if (untrained := self._untrained) is None or not (step := self._training.step):
            return
        trained = self._training.copied_weights()
        self._training.put_weights(untrained)
        self._training.step = 0
        self._measure()
        self._training.put_weights(trained)
        self._training.step = step
        # It was saved before it was known to be the best.
        self._log.kept_checkpoints(checkpoint.folders(self._checkpoints), best=self._best_step)
        self._session = _Session(step)

    def saw(self, update: Update) -> None:
        """Log an update, and evaluate and save when due.

        Raises:
            FitError: The update was not made, for its loss or gradient was not finite.
        """
        self._pace.add(update)
        step, watching = self._training.step, self._run.watching
        if not update.made:
            self._log_curves(update, step + 1)
            problem = self._diverged(update)
            self._ring([Change("nan", str(problem))])
            raise problem
        self._ring(self._alarms.saw(update.loss, update.inv_tau))
        last = step == self._training.total_steps
        self._report(TRAINING)
        if step % watching.log_every == 0 or last:
            self._log_curves(update, step)
        if step >= self._measures_untrained_at:
            self._measure_untrained_later()
        improved = False
        if last or step % watching.evaluate_every == 0 or step in self._snapshot_steps:
            improved = self._measure()
        if improved or (step % watching.checkpoint_every == 0 and not last):
            self.save()

    def visit(self, step: int) -> None:
        """Measure and save the weights as a step that no update has led to."""
        self._training.step = step
        self._report(TRAINING)
        self._measure()
        self.save()

    def mark_best(self, step: int) -> None:
        """Mark a checkpoint as the best, whatever the main metric says."""
        self._best_step = step
        self._log.kept_checkpoints(checkpoint.folders(self._checkpoints), best=step)

    @property
    def own_and_reference(self) -> tuple[tuple[str, str], tuple[str, str] | None]:
        """Data set and split of the first held-out pairs, and of the reference set; None without one."""
        named = {heldout.prefix: (heldout.pairs.name, heldout.pairs.split) for heldout in self._heldout}
        return named["val"], named.get(REFERENCE)

    @property
    def _is_evaluated(self) -> bool:
        return self._evaluation is not None and self._evaluation.step == self._training.step

    def evaluate(self) -> None:
        """Evaluate on request, unless this step has been evaluated; a new best model is saved."""
        self._measure_untrained_later()
        if not self._is_evaluated and self._measure():
            self.save()
            # The step may have been saved before it was known to be the best.
            self._log.kept_checkpoints(checkpoint.folders(self._checkpoints), best=self._best_step)

    def save(self) -> None:
        """Save a checkpoint of this step, unless it exists, and remove those no longer needed."""
        step = self._training.step
        if step == self._saved_step:
            return
        self._measure_untrained_later()
        state = {
            "step": step,
            "best": self._best,
            "best_step": self._best_step,
            "optimizer": self._training.optimizer.state_dict(),
        }
        self._written(self._log.sync)
        folder = self._written(
            lambda: checkpoint.save(
                self._checkpoints, modules=self._training.modules, training=state, tokenizer=self._tokenizer
            )
        )
        self._log.checkpoint(step, folder, best=step == self._best_step)
        crash_points.point("checkpoint.registered")
        self._saved_step = step
        self._prune()

    def _prune(self) -> None:
        for gone in checkpoint.prune(self._checkpoints, best=self._best_step, keep=self._run.watching.checkpoints_kept):
            crash_points.point("checkpoint.pruned")
            self._log.drop_checkpoint(gone)

    def _written(self, write: Callable[[], _Written]) -> _Written:
        """Write an essential file, pausing the run while the disk is full."""
        waited = self._room.waited
        written = self._room.until_written(write)
        if self._room.waited > waited:
            self._session = _Session(self._training.step)
        return written

    def _ring(self, changes: list[Change]) -> None:
        """Write raised and cleared alerts to the run's row and its log."""
        for change in changes:
            if change.words:
                self._log.alert(change.kind, change.words, self._training.step)
                self._text_log.say(f"alert ({WORDS[change.kind].lower()}): {change.words}")
            else:
                self._log.all_clear(change.kind)
                self._text_log.say(f"all clear: {WORDS[change.kind].lower()} no more")

    def rest(self, control: ControlFlags) -> None:
        """Pause, with the model in memory, until the pause request is withdrawn."""
        self._log.status("paused")
        self._text_log.say(f"paused after step {self._training.step}")
        # It has saved before it paused.
        while (requested := control.now()) in ("pause", "save", "evaluate"):
            if requested == "evaluate":
                self.evaluate()
            self._report("paused")
            time.sleep(REST_S)
        self._session = _Session(self._training.step)
        if requested != "stop":
            self._log.status("running")
            self._text_log.say("going on")

    def _report(self, phase: str) -> None:
        step, total = self._training.step, self._training.total_steps
        if phase == TRAINING and (beside := self._training.preparing):
            phase = f"{TRAINING} · {beside}"
        self._log.progress(step=step, total_steps=total, phase=phase, eta_s=self._session.eta_s(step, total))

    def _log_curves(self, update: Update, step: int) -> None:
        pace, self._pace = self._pace, _Pace()
        pairs = pace.updates * self._run.optimizer.batch_size
        values = {
            "train/loss": update.loss,
            "train/learning_rate": update.learning_rate,
            "train/gradient_norm": update.gradient_norm,
            "train/pairs_per_s": pairs / pace.seconds,
            "train/data_wait": pace.data_s / pace.seconds,
        }
        if update.inv_tau is not None:
            values["train/inv_tau"] = update.inv_tau
        values |= {f"train/{name}": number for name, number in self._training.method.epoch_numbers.items()}
        values |= system_metrics.load(self._training.device)
        if (energy := self._energy.wh()) is not None:
            values[METRIC] = energy
        self._written(lambda: self._log.scalars(step, values))

    def _diverged(self, update: Update) -> FitError:
        what = "The loss" if not math.isfinite(update.loss) else "The gradient"
        saved = "No checkpoint was made yet"
        if self._saved_step is not None:
            saved = f"The checkpoint of step {self._saved_step} is still valid"
        rate = self._run.optimizer.learning_rate
        return FitError(
            f"{what} became {update.loss if what == 'The loss' else update.gradient_norm} in the update after step "
            f"{self._training.step}. {saved}; duplicate the run with a lower learning rate ({rate / 3:.0e}, say) or a "
            "longer warm-up."
        )

    def _measure(self) -> bool:
        """Evaluate each held-out split not evaluated at this step; return whether the main metric improved."""
        step = self._training.step
        if step == 0:
            self._untrained = None
        self._sign("evaluating")
        evaluation = self._evaluation
        if evaluation is None or evaluation.step != step:
            evaluation = _Evaluation(step)
        stored = self._embedded_reference()
        waiting = [heldout for heldout in self._heldout if heldout.prefix not in evaluation.numbers]
        for heldout in waiting:
            self._measure_split(heldout, evaluation, stored)
        self._snapshot_batch()
        if evaluation.asking != self._noted_asking:
            self._noted_asking = dict(evaluation.asking)
            self._log.facts(heldout_questions=evaluation.asking)
        new = {name: value for heldout in waiting for name, value in evaluation.numbers[heldout.prefix].items()}
        self._written(lambda: self._log.scalars(step, new))
        self._evaluation = evaluation
        self._say_evaluation(evaluation)
        return self._judge(evaluation.all_numbers.get(self._headline, math.nan))

    def _embedded_reference(self) -> Float[np.ndarray, "m d"] | None:
        """Return the embedded training pairs, if neighbors are sought among them at this step."""
        training = self._training
        # Runs of image-text pairs are judged by recall; for comparison with the others their last evaluation has both.
        seeks = self._measurement.by_neighbors or training.step == training.total_steps
        if self._reference is None or not seeks:
            return None
        alive = self._sign(f"embedding {self._reference.drawn:,} training pairs to find neighbors among")
        return self._reference.embed(training.measured, training.device, alive=alive)

    def _measure_split(
        self, heldout: HeldOut, evaluation: _Evaluation, stored: Float[np.ndarray, "m d"] | None
    ) -> None:
        """Measure one split, record its numbers and questions, and save its snapshot if one is due."""
        training, pairs, measurement = self._training, heldout.pairs, self._measurement
        is_due = evaluation.step in self._snapshot_steps
        alive = self._sign(f"embedding and measuring {len(pairs):,} pairs, {split_label(pairs.split)}")
        features = is_due and self._run.watching.features
        embedded = heldout.embed(training.measured, training.device, features=features, alive=alive)
        numbers = measurement.numbers(training.measured, heldout, embedded, alive=alive)
        numbers |= self._plugin_numbers(embedded)
        questions = measurement.questions(heldout)
        neighbors: dict[str, float] = {}
        if self._reference is not None and stored is not None and heldout.prefix != REFERENCE:
            questions["knn"] = of_reference(self._reference, heldout, images=embedded.image is not None)
            neighbors = self._reference.numbers(heldout, embedded, stored)
        evaluation.add(heldout, numbers | neighbors if measurement.by_neighbors else numbers, questions)
        if measurement.makes_embeddings and heldout is self._heldout[0]:
            self._watch_collapse(embedded)
        if heldout.prefix == REFERENCE and not self._run.tuning.mix:
            self._ring(self._forgetting.measured(evaluation.step, heldout, embedded))
        self._log.evaluation(evaluation.step, pairs.name, pairs.split, numbers | neighbors, questions)
        if measurement.makes_embeddings and is_due:
            self._snapshot(heldout, embedded)

    def _watch_collapse(self, embedded: Embedded) -> None:
        rows = {"image": embedded.image, "text": embedded.text}
        present = {name: values for name, values in rows.items() if values is not None}
        self._ring(self._alarms.measured(self._training.step, present))
        self._log.facts(**{BEST: self._alarms.best})

    def _say_evaluation(self, evaluation: _Evaluation) -> None:
        total = self._training.total_steps
        sizes = {heldout.prefix: len(heldout.pairs) for heldout in self._heldout}
        for heldout in self._heldout:
            asking = evaluation.asking.get(_noted_split(heldout), {})
            sizes |= {f"{heldout.prefix}/{direction}": n for direction, n in asking.items()}
        lines = self._measurement.lines(evaluation.all_numbers, sizes)
        self._text_log.say("\n".join((f"step {evaluation.step} of {total}", *lines)))

    def _plugin_numbers(self, embedded: Embedded) -> dict[str, float]:
        """Return what plug-ins measure; one that fails is reported and not called again."""
        numbers: dict[str, float] = {}
        for name, measure_by in list(plugins.loaded().metrics.items()):
            try:
                numbers |= {str(key): float(value) for key, value in measure_by(embedded.image, embedded.text).items()}
            except Exception as error:  # whatever the code of another package raises
                del plugins.loaded().metrics[name]
                self._text_log.say(f"the metrics of the plug-in {name} failed and are left out: {error}")
        return numbers

    def _snapshot_batch(self) -> None:
        if self._batch is not None and self._training.step in self._snapshot_steps:
            alive = self._sign(f"embedding {len(self._batch.pairs):,} pairs of a batch")
            self._snapshot(self._batch, self._batch.embed(self._training.measured, self._training.device, alive=alive))

    def _sign(self, doing: str) -> Callable[[], None]:
        """Return the progress callback of one part of an evaluation, which names a part that takes seconds."""
        began, pause = time.monotonic(), SAY_S

        def alive() -> None:
            nonlocal pause
            self._report(EVALUATING)
            if self._saved_step is None:
                self._give_up()
            if (spent := time.monotonic() - began) >= pause:
                pause = 2 * spent
                self._text_log.say(f"{doing}, {duration(spent)} so far")

        alive()
        return alive

    def _judge(self, value: float) -> bool:
        improved = math.isfinite(value) and (self._best is None or value > self._best)
        if improved:
            self._best, self._best_step = value, self._training.step
        if self._best is not None:
            self._log.headline(value, self._best)
        return improved

    def _snapshot(self, heldout: HeldOut, embedded: Embedded) -> None:
        pairs = heldout.pairs
        write = functools.partial(
            self._log.write_snapshot,
            self._training.step,
            pairs.name,
            pairs.split,
            image=embedded.image,
            text=embedded.text,
            items=heldout.items(),
            fingerprint=pairs.fingerprint,
            features=embedded.features,
        )
        self._written(write)
