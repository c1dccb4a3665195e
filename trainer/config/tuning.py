"""How a run continues from weights that were trained before: where they are, what of them changes, what is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from trainer.config.fields import ConfigError, option

OF_START: Final = "start"
"""A reference set: the held-out pairs of the run that is started from."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Fine-tuning of the weights of another run; nothing of it applies where `start` is empty."""

    start: str = option(
        "",
        "Start from",
        "A run whose weights are trained on: number, name or folder, with @STEP for one of its checkpoints. Empty: the "
        "model as it is configured.",
    )
    reference: str = option(
        "",
        "Reference set",
        "Measured with the own data from step 0 on, to see what is forgotten. start: held-out pairs of the run that "
        "is started from; else a folder, table, tar or a data set by name (CIFAR10). Empty: none.",
    )
    reference_most: int = option(
        2_000, "Reference pairs", "Of a reference set by path or name, at most.", low=2, high=100_000, advanced=True
    )
    image_rate: float = option(
        1.0, "Image rate", "Factor on the learning rate of the image tower; 0: frozen.", low=0.0, high=100.0
    )
    text_rate: float = option(
        1.0, "Text rate", "Factor on the learning rate of the text tower; 0: frozen.", low=0.0, high=100.0
    )
    freeze_image: int = option(
        0,
        "Frozen image layers",
        "How many of the lowest blocks of the image tower stay frozen, with what is below them.",
        low=0,
        high=1_000,
        unit="blocks",
        advanced=True,
    )
    freeze_text: int = option(
        0,
        "Frozen text layers",
        "How many of the lowest blocks of the text tower stay frozen, with what is below them.",
        low=0,
        high=1_000,
        unit="blocks",
        advanced=True,
    )
    update_norms: bool = option(
        False,
        "Update batch norms",
        "Let the statistics of batch norms follow the own data. Off: those of trained weights stay, since a small set "
        "of other pictures replaces them within a few steps, and with them what the model knew.",
        advanced=True,
    )
    probe_steps: int = option(
        0,
        "Probe first",
        "Steps that train the last layer of each tower alone before the rest joins (LP-FT); 0: none.",
        low=0,
        high=1_000_000,
        unit="steps",
        advanced=True,
    )
    probe_rate: float = option(
        1e-3, "Rate of the probe", "Learning rate of these steps.", low=1e-8, high=10.0, advanced=True
    )
    lora_rank: int = option(
        0,
        "LoRA rank",
        "Train a product of two thin matrices next to each chosen one, which stays as it is; 0: train the weights.",
        low=0,
        high=1_024,
    )
    lora_alpha: float = option(
        16.0, "LoRA alpha", "The product counts alpha / rank times.", low=0.0, high=10_000.0, advanced=True
    )
    lora_targets: Literal["attention", "mlp", "attention and mlp"] = option(
        "attention and mlp", "LoRA targets", "Which matrices of the blocks get a LoRA product.", advanced=True
    )
    adapter: str = option(
        "",
        "Adapter",
        "Folder of a LoRA adapter as PEFT saves it, to begin with; its rank, alpha and targets are taken.",
        advanced=True,
    )
    mix: str = option(
        "",
        "Mix with",
        "Runs that were fine-tuned from the start, with a space between them: nothing is trained, and the weights are "
        "(1 - alpha) start + alpha mean of theirs.",
        advanced=True,
    )
    alphas: str = option(
        "0 .25 .5 .75 1", "Alphas", "At which the mix is measured and kept, from 0 to 1.", advanced=True
    )

    @property
    def start_run(self) -> str:
        """The run that is started from, without a step; empty without one."""
        return run_and_step(self.start)[0]

    @property
    def start_step(self) -> int:
        """The step of its checkpoint; -1: its newest."""
        return run_and_step(self.start)[1]

    @property
    def mixed_runs(self) -> tuple[tuple[str, int], ...]:
        """The runs that are mixed, each with the step of its checkpoint, -1: its newest."""
        return tuple(run_and_step(part) for part in self.mix.split())

    @property
    def percents(self) -> tuple[int, ...]:
        """The alphas in percent, ascending, from 0 on: the steps of a run that mixes.

        Raises:
            ConfigError: One is not a number from 0 to 1 of at most two decimals.
        """
        try:
            values = [100 * float(part) for part in self.alphas.replace(",", " ").split()]
        except ValueError as error:
            raise ConfigError(f"tuning.alphas {self.alphas!r}: {error}.", field="tuning.alphas") from error
        percents = sorted({0, 100, *(round(value) for value in values)})
        if not all(0 <= value <= 100 and abs(value - round(value)) < 1e-6 for value in values):
            raise ConfigError(
                f"tuning.alphas {self.alphas!r}: write numbers from 0 to 1 with at most two decimals: 0 .25 .5 .75 1.",
                field="tuning.alphas",
                better="0 .25 .5 .75 1",
            )
        return tuple(percents)

    def check(self, *, epochs: int, compares_pairs: bool) -> None:
        """Check what the fields say together.

        Raises:
            ConfigError: Names the field, the cause, and what to choose instead.
        """
        if not self.start and (lost := self._without_start()):
            raise ConfigError(
                f"tuning.{lost} is for a run that continues from another: name it, tuning.start=RUN.",
                field=f"tuning.{lost}",
            )
        if self.mix:
            self.percents  # noqa: B018  (raises)
            if epochs:
                raise ConfigError(
                    f"optimizer.epochs {epochs}: a mix of runs trains nothing; choose 0.",
                    field="optimizer.epochs",
                    better=0,
                )
        if (self.mix or self.reference) and not compares_pairs:
            name = "mix" if self.mix else "reference"
            raise ConfigError(
                f"tuning.{name} is measured by retrieval between images and texts, which this objective does not "
                "compare: leave it empty.",
                field=f"tuning.{name}",
                better="",
            )

    def _without_start(self) -> str:
        """Return the first field that means nothing without a start and is not at its default; empty for none."""
        plain = Tuning()
        named = ("reference", "lora_rank", "adapter", "mix", "probe_steps")
        return next((name for name in named if getattr(self, name) != getattr(plain, name)), "")


def run_and_step(text: str) -> tuple[str, int]:
    """Return the run of `RUN@STEP`, and the step; -1, its newest, without one."""
    run, _, step = text.strip().rpartition("@")
    return (run, int(step)) if run and step.isdecimal() else (text.strip(), -1)
