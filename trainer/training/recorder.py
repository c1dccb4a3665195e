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

from trainer import config, plugins
from trainer.alerts import WORDS, AlertWatch, Change
from trainer.checkpoints import checkpoint
from trainer.data import DataSplits
from trainer.data.pairs import BATCH
from trainer.data.published_tokenizers import AnyTokenizer
from trainer.evaluation import Embedded, HeldOut, ReferencePairs, measure, questions
from trainer.evaluation.caption_answers import while_training
from trainer.evaluation.decoder_numbers import MOST, decoder_numbers
from trainer.evaluation.decoder_numbers import question as decoder_question
from trainer.methods import DecoderPictures
from trainer.metrics import headline, logged_name, metric
from trainer.store import EVALUATING, RunLog, crash_points, disk, snapshot_name, write_snapshot
from trainer.store.files import make_folder
from trainer.training import system_load
from trainer.training.control import ControlFlags
from trainer.training.disk_guard import DiskGuard
from trainer.training.session import FitError, TrainingSession, Update
from trainer.training.text_log import TextLog

TRAINING: Final = "training"
"""Phase of a run that makes updates; before it come the phases of preparing the data."""

_SPARE: Final = 2**20
"""Bytes that a snapshot takes beside its embeddings, about."""
_Written = TypeVar("_Written")

SAY_S: Final = 3.0
"""How long a preparation goes on between two lines about it, an evaluation until the first."""

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
    """The start of training in this session, for the time estimate."""

    step: int
    began: float = field(default_factory=time.monotonic)

    def eta_s(self, step: int, total_steps: int) -> float | None:
        made = step - self.step
        return (time.monotonic() - self.began) / made * (total_steps - step) if made else None


class Recorder:
    """Monitors one training session; everything it writes goes through the run's log."""

    def __init__(
        self,
        log: RunLog,
        run: config.Run,
        *,
        text_log: TextLog,
        room: DiskGuard,
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Create it without evaluating anything.

        Args:
            log: Of the run.
            run: Its configuration.
            text_log: Lines for the person.
            room: Waits for a full disk.
            give_up: Called while the untrained model is measured; raises where that is to end at once.
        """
        self._log = log
        self._room = room
        self._give_up = give_up
        self._run = run
        self._text_log = text_log
        self._checkpoints: Path = log.folder / "checkpoints"
        self._heldout: list[HeldOut] = []
        self._batch: HeldOut | None = None
        self._reference: ReferencePairs | None = None
        self._headline = headline(run)
        self._tokenizer = ""
        self._best: float | None = None
        self._best_step: int | None = None
        self._saved_step: int | None = None
        self._measured_step: int | None = None
        self._measured: dict[str, dict[str, float]] = {}
        """What each held-out split had at that step."""
        self._questions_noted: dict[str, dict[str, int]] = {}
        self._pace = _Pace()
        self._session = _Session(0)

    def watch(
        self, training: TrainingSession, splits: DataSplits, tokenizer: AnyTokenizer, *, with_batch: bool = True
    ) -> None:
        """Set the session, and the splits to evaluate on: the first is `val`, the others keep their names.

        Args:
            training: The session.
            splits: Its data.
            tokenizer: Of the run.
            with_batch: Whether the pairs of the first step are embedded beside the held-out ones.
        """
        self._training = training
        total = training.total_steps
        if self._measured_step is None:
            self._alarms = AlertWatch(self._log.folder, total, _limits(self._run.objective))
        self._log.memory = lambda: system_load.memory(training.device)
        self._snapshot_steps = {round(s) for s in np.linspace(0, total, self._run.watching.snapshots)}
        self._tokenizer = tokenizer.to_json()
        self._heldout = []
        length = training.architecture.context_length
        decodes = self._run.objective.towers == "source"
        self._reference = (
            None
            if decodes
            else ReferencePairs(splits.train, tokenizer=tokenizer, context_length=length, total=splits.training_pairs)
        )
        for split, pairs in splits.heldout.items():
            prefix = split if self._heldout else "val"
            self._heldout.append(
                HeldOut(pairs, prefix=prefix, suite=splits.suite, tokenizer=tokenizer, context_length=length)
            )
        if with_batch and self._run.objective.towers == "both":
            batch = training.first_batch()
            self._batch = HeldOut(batch, prefix=BATCH, suite=None, tokenizer=tokenizer, context_length=length)

    def measure_untrained(self) -> None:
        """Measure the untrained model on splits not measured yet, before `begin`, which does not measure it again."""
        if self._measured_step is None:
            self._room.until_written(lambda: self._log.rewind(-1))
        self._measure()

    def begin(self) -> None:
        """Resume from the newest valid checkpoint; without one, evaluate and save the untrained model."""
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
        measured = self._measured_step is not None
        # Without a checkpoint the untrained model is measured anew too: nothing may be there twice.
        if not measured:
            self._room.until_written(lambda: self._log.rewind(loaded.step if loaded else -1))
        # A kill may have come between the last checkpoint and the removal of those that it made needless.
        self._prune()
        self._log.kept_checkpoints(checkpoint.folders(self._checkpoints), best=self._best_step)
        self._session = _Session(self._training.step)
        self._report(TRAINING)
        if measured:
            self._snapshot_batch()
        elif not loaded:
            self._measure()
        if not loaded:
            self.save()

    def forget_untrained(self) -> None:
        """Remove what was measured of the untrained model: without the rest it is of no use."""
        self._room.until_written(lambda: self._log.rewind(-1))

    @property
    def updates_until_due(self) -> int:
        """Updates up to the next that is logged, evaluated or saved, itself included."""
        step, watching = self._training.step, self._run.watching
        every = (watching.log_every, watching.evaluate_every, watching.checkpoint_every)
        due = [self._training.total_steps, *(step - step % each + each for each in every)]
        return min(at for at in [*due, *self._snapshot_steps] if at > step) - step

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
        self._ring(self._alarms.saw(update.loss, self._training.method.inv_tau))
        last = step == self._training.total_steps
        self._report(TRAINING)
        if step % watching.log_every == 0 or last:
            self._log_curves(update, step)
        improved = False
        if last or step % watching.evaluate_every == 0 or step in self._snapshot_steps:
            improved = self._measure()
        if improved or (step % watching.checkpoint_every == 0 and not last):
            self.save()

    def evaluate(self) -> None:
        """Evaluate on request, unless this step has been evaluated; a new best model is saved."""
        if self._measured_step != self._training.step and self._measure():
            self.save()
            # The step may have been saved before it was known to be the best.
            self._log.kept_checkpoints(checkpoint.folders(self._checkpoints), best=self._best_step)

    def save(self) -> None:
        """Save a checkpoint of this step, unless it exists, and remove those no longer needed."""
        step = self._training.step
        if step == self._saved_step:
            return
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
        if self._training.method.inv_tau is not None:
            values["train/inv_tau"] = self._training.method.inv_tau
        values |= system_load.load(self._training.device)
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
        """Evaluate each held-out split, save a snapshot if due, and return whether the main metric improved."""
        step = self._training.step
        alive = self._sign("evaluating")
        if self._measured_step != step:
            self._measured = {}
        new: dict[str, float] = {}
        questions_asked = dict(self._questions_noted) if self._measured else {}
        alone = self._run.objective.towers != "both"
        # Runs of image-text pairs are judged by recall; for comparison with the others their last evaluation has both.
        neighbors = alone or step == self._training.total_steps
        stored = None
        if neighbors and self._reference is not None:
            alive = self._sign(f"embedding {self._reference.drawn:,} training pairs to find neighbors among")
            stored = self._reference.embed(self._training.measured, self._training.device, alive=alive)
        keeps = step in self._snapshot_steps and self._run.watching.features
        for heldout in self._heldout:
            if heldout.prefix in self._measured:
                continue
            alive = self._sign(f"embedding and measuring {len(heldout.pairs):,} {heldout.pairs.split}")
            embedded = heldout.embed(self._training.measured, self._training.device, features=keeps, alive=alive)
            size = self._run.optimizer.batch_size
            numbers = measure(heldout, embedded, self._training.method, batch_size=size, alive=alive)
            decoder = self._training.method if isinstance(self._training.method, DecoderPictures) else None
            if decoder is not None:
                numbers |= decoder_numbers(heldout, embedded, decoder, alive=alive)
            by, named = while_training(self._training.method, self._training.measured, heldout, self._training.device)
            numbers |= named
            near = {} if stored is None else self._reference.numbers(heldout, embedded, stored)
            logged = numbers | near if alone else numbers
            logged |= self._plugin_numbers(embedded)
            self._measured[heldout.prefix] = {f"{heldout.prefix}/{name}": value for name, value in logged.items()}
            new |= self._measured[heldout.prefix]
            if heldout is self._heldout[0] and decoder is None:
                rows = {"image": embedded.image, "text": embedded.text}
                self._ring(self._alarms.measured(step, {name: r for name, r in rows.items() if r is not None}))
            both = embedded.image is not None and embedded.text is not None
            if decoder is not None:
                asked = {"decoder": decoder_question(len(heldout.pairs), decoder.size)}
            else:
                masks = getattr(self._training.method, "masks", False)
                asked = questions.of_training(heldout, batch_size=size, both=both, masks=masks, by=by)
            if retrieval := asked.get("retrieval"):
                questions_asked[heldout.pairs.split] = {
                    way: retrieval.asked(way) for way in ("image_to_text", "text_to_image")
                }
            if self._reference is not None:
                asked["knn"] = questions.of_reference(self._reference, heldout, images=embedded.image is not None)
            self._log.evaluation(step, heldout.pairs.name, heldout.pairs.split, numbers | near, asked)
            # The embeddings of a decoder are those of the run it decodes, which keeps them.
            if step in self._snapshot_steps and decoder is None:
                self._snapshot(heldout, embedded)
        self._snapshot_batch()
        if questions_asked != self._questions_noted:
            self._questions_noted = questions_asked
            self._log.facts(heldout_questions=questions_asked)
        self._written(lambda: self._log.scalars(step, new))
        self._measured_step = step
        found = {name: value for numbers in self._measured.values() for name, value in numbers.items()}
        line = _decoder_line if self._run.objective.towers == "source" else _alone_line if alone else _line
        sizes = {one.prefix: len(one.pairs) for one in self._heldout}
        for one in self._heldout:
            sizes |= {f"{one.prefix}/{way}": n for way, n in questions_asked.get(one.pairs.split, {}).items()}
        self._text_log.say(line(step, self._training.total_steps, found, sizes))
        return self._judge(found.get(self._headline, math.nan))

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
                self._text_log.say(f"{doing}, {spent:.0f} s so far")

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
        pairs, step = heldout.pairs, self._training.step
        folder = self._log.folder / "snapshots" / snapshot_name(dataset=pairs.name, split=pairs.split, step=step)
        write = functools.partial(
            write_snapshot,
            folder,
            image=embedded.image,
            text=embedded.text,
            items=heldout.items(),
            step=step,
            dataset=pairs.name,
            split=pairs.split,
            model=self._log.run.name,
            fingerprint=pairs.fingerprint,
            features=embedded.features,
        )
        need = _SPARE + sum(rows.nbytes for rows in (embedded.image, embedded.text) if rows is not None)
        self._written(lambda: self._whole_snapshot(folder, need, write))
        width = next(rows.shape[1] for rows in (embedded.image, embedded.text) if rows is not None)
        self._log.snapshot(step, pairs.name, pairs.split, folder, len(pairs), width)

    def _whole_snapshot(self, folder: Path, need: int, write: Callable[[], None]) -> None:
        with disk.writing(f"The snapshot of step {self._training.step}", folder, need):
            # Not its parents: a run's folder that is gone must not come back as an empty one.
            make_folder(folder.parent)
            write()


def _limits(objective: config.Objective) -> tuple[float, float] | None:
    """Return the clamp limits of a learned inverse temperature."""
    most = getattr(objective, "inv_tau_max", None)
    learned = getattr(objective, "learn_inv_tau", True)
    return (1.0, most) if most is not None and learned else None


def _line(step: int, total_steps: int, numbers: dict[str, float], sizes: Mapping[str, int]) -> str:
    """Format an evaluation for the log; `sizes` are pairs by prefix, and distinct questions by prefix and direction."""
    names = ["val/image_to_text_R@1", "val/image_to_text_R@5", "val/text_to_image_R@1"]
    names += [name for name in numbers if name.endswith("/image_to_text_R@1") and not name.startswith("val/")]
    parts = (f"{logged_name(name, sizes.get(name.partition('_R@')[0]))} {numbers[name]:.3f}" for name in names)
    head = f"step {step:>{len(str(total_steps))}} of {total_steps}  val loss {numbers['val/loss']:.4f}"
    return "  ".join((head, *parts))


def _decoder_line(step: int, total_steps: int, numbers: dict[str, float], sizes: Mapping[str, int]) -> str:
    """Format an evaluation of a decoder for the log."""
    names = ("mean_picture_r2", "denoising_loss", "denoising_loss_dropped", "prior_cosine", "text_cosine")
    measured = [metric(f"val/{name}") for name in names if f"val/{name}" in numbers]
    values = "  ".join(f"{entry.label} {entry.text(numbers[entry.name])}" for entry in measured)
    return f"step {step:>{len(str(total_steps))}} of {total_steps}  n = {min(sizes.get('val', 0), MOST):,}  {values}"


def _alone_line(step: int, total_steps: int, numbers: dict[str, float], _sizes: Mapping[str, int]) -> str:
    """Format an evaluation of a single-tower model for the log."""
    names = [name for name in numbers if name.endswith(("/knn_acc1", "/knn_words"))]
    values = "  ".join(f"{metric(name).label} {numbers[name]:.3f}" for name in names)
    return f"step {step:>{len(str(total_steps))}} of {total_steps}  {values}"
