"""Optimization by what a run's weights are: pretrained ones are trained on far more slowly than random ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer.config.data import Data
from trainer.config.model import Model, OpenClip
from trainer.config.optimizer import Optimizer
from trainer.config.run import Run
from trainer.config.tuning import OF_START, Tuning

FINE_TUNING: Final[Mapping[str, Any]] = {
    "learning_rate": 1e-5,
    "weight_decay": 0.1,
    "warmup_steps": 100,
    "layer_decay": 0.75,
}
"""Fields of the optimizer that suit pretrained weights; at the rates of random ones they forget what they are."""

LORA: Final[Mapping[str, Any]] = {"learning_rate": 1e-4, "layer_decay": 1.0}
"""Fields of the optimizer that suit LoRA, whose matrices begin at random beside weights that stay."""

_FAST: Final = 1e-4
"""Learning rates beyond this are those of training from nothing."""
_EPOCHS: Final = 5


def is_pretrained(model: Model) -> bool:
    """Return whether a run starts from weights that somebody trained: a tag, a model of the hub, a file or folder."""
    if not isinstance(model, OpenClip):
        return False
    name = model.name.strip()
    is_file = "/" in name or "\\" in name or Path(name).suffix in (".pt", ".safetensors") or Path(name).is_dir()
    return bool(model.pretrained.strip()) or name.startswith(("hf-hub:", "local-dir:")) or is_file


def continues_training(run: Run) -> bool:
    """Return whether a run starts from trained weights: a pretrained model, or those of another run."""
    return bool(run.tuning.start.strip()) or is_pretrained(run.model)


def by_weights(before: Run, run: Run, stated: Iterable[str]) -> Run:
    """Return the run with the optimization that suits its weights, where it takes trained ones in place of others.

    Args:
        before: The run whose optimization `run` has: a preset, for instance. What one of trained weights has stays.
        run: The run that is made of it.
        stated: Fields that were asked for by name, as `optimizer.learning_rate`; they stay.
    """
    suited: dict[str, Any] = {}
    if continues_training(run) and not continues_training(before):
        suited |= FINE_TUNING
    if run.tuning.lora_rank and not before.tuning.lora_rank:
        suited |= LORA
    unchanged = {field.removeprefix("optimizer.") for field in stated}
    changes = {field: value for field, value in suited.items() if field not in unchanged}
    return dataclasses.replace(run, optimizer=dataclasses.replace(run.optimizer, **changes)) if changes else run


def weights_words(run: Run) -> str:
    """Return what is to be said of the optimization of trained weights; empty for others, and without training."""
    chosen, usual = run.optimizer, Optimizer().learning_rate
    if not continues_training(run) or not chosen.epochs:
        return ""
    summary = (
        f"The weights are pretrained: learning rate {chosen.learning_rate:g}, layer-wise {chosen.layer_decay:g}, "
        f"{chosen.warmup_steps:,} steps of warm-up"
    )
    if chosen.learning_rate <= _FAST:
        return f"{summary} (from nothing: {usual:g})."
    return (
        f"{summary}, as asked for by name. So fast a rate is one of training from nothing: the model may forget what "
        f"it was. {FINE_TUNING['learning_rate']:g} is usual."
    )


def fine_tuning_of(source: Run, start: str, *, data: Data | None = None) -> Run:
    """Return the run that fine-tunes the weights of another: its towers and objective, optimized by what they are.

    Args:
        source: The configuration of the run with the weights.
        start: What it is called in `tuning.start`.
        data: What is learned; None: the data of `source`. Its held-out pairs are the reference set where it has others.
    """
    chosen = data or source.data
    return dataclasses.replace(
        source,
        name=f"{source.name} tuned",
        data=chosen,
        optimizer=Optimizer(
            batch_size=source.optimizer.batch_size,
            micro_batch=source.optimizer.micro_batch,
            crop_scale=source.optimizer.crop_scale,
            epochs=_EPOCHS,
            **FINE_TUNING,
        ),
        tuning=Tuning(start=start, reference="" if chosen == source.data else OF_START),
    )


def mix_of(tuned: Sequence[tuple[str, Run]], start: str, *, alphas: str, name: str) -> Run:
    """Return the run that measures mixes of a start with the mean of runs that were fine-tuned from it.

    Args:
        tuned: What each is called in `tuning.mix`, and its configuration; data and reference set are the first one's.
        start: What the start is called in `tuning.start`.
        alphas: Shares of the fine-tuned runs.
    """
    first = tuned[0][1]
    tuning = Tuning(
        start=start,
        reference=first.tuning.reference,
        reference_most=first.tuning.reference_most,
        mix=" ".join(called for called, _ in tuned),
        alphas=alphas,
    )
    made = dataclasses.replace(
        first, name=name, ranks=1, tuning=tuning, optimizer=dataclasses.replace(first.optimizer, epochs=0)
    )
    checkpoints = max(first.watching.checkpoints_kept, len(tuning.percents))
    return dataclasses.replace(made, watching=dataclasses.replace(first.watching, checkpoints_kept=checkpoints))


@dataclass(frozen=True)
class Origin:
    """A setting of a fine-tuning, and why it is what it is."""

    field: str  # Its dotted name.
    label: str  # For people.
    value: str  # As it is written.
    why: str  # In words.


def origins(run: Run, *, source: str, stated: Collection[str] = (), pairs: int | None = None) -> tuple[Origin, ...]:
    """Return where the settings of a fine-tuning come from; the dotted fields `stated` were asked for by name."""
    usual, lora = Optimizer(), run.tuning.lora_rank > 0
    kind = "LoRA begins at random, next to weights that stay" if lora else "the weights are pretrained"
    layered = "LoRA's matrices are new in every layer" if lora else "lower layers know what most data share"
    counted = f"that of {source}, at most what {f'{pairs:,}' if pairs else 'the'} training pairs allow"
    reasons = {
        "optimizer.learning_rate": f"{kind}; from nothing it is {usual.learning_rate:g}",
        "optimizer.layer_decay": layered,
        "optimizer.weight_decay": "that of CLIP's training",
        "optimizer.warmup_steps": "at most half of the run; until then the moments of AdamW say little",
        "optimizer.batch_size": counted,
        "optimizer.epochs": "short; the reference set says what longer costs",
        "tuning.image_rate": "both towers learn at one rate",
        "tuning.text_rate": "both towers learn at one rate",
        "tuning.reference": _reference_reason(run, source),
    }
    fields = {name: value for name, value in _values(run).items() if name in reasons}
    named = {name: "asked for by name" for name in stated if name in reasons}
    entries = [Origin(name, _label(run, name), value, named.get(name, reasons[name])) for name, value in fields.items()]
    frozen = _frozen(run)
    entries.append(Origin("model.freeze", "Frozen", frozen or "nothing", "asked for by name" if frozen else "default"))
    origin = f"kept from {source}"
    return (*entries, Origin("objective", "Objective, 1/tau", run.objective.label, origin))


def _reference_reason(run: Run, source: str) -> str:
    if run.tuning.reference == OF_START:
        return f"held-out pairs of {source}, which it should not forget"
    return "what should not be forgotten" if run.tuning.reference else f"the data are those of {source}; name another"


def _frozen(run: Run) -> str:
    """Return what does not learn; empty for nothing."""
    tuning, freeze = run.tuning, getattr(run.model, "freeze", "none")
    parts = [] if freeze == "none" else [freeze]
    parts += ["all but LoRA"] if tuning.lora_rank else []
    sides = (("image", tuning.freeze_image, tuning.image_rate), ("text", tuning.freeze_text, tuning.text_rate))
    for side, blocks, rate in sides:
        parts += [f"{side} tower"] if not rate else [f"{blocks} {side} blocks"] if blocks else []
    return ", ".join(parts)


def _values(run: Run) -> dict[str, str]:
    sections: dict[str, Optimizer | Tuning] = {"optimizer": run.optimizer, "tuning": run.tuning}
    return {
        f"{name}.{field.name}": _written(getattr(section, field.name))
        for name, section in sections.items()
        for field in dataclasses.fields(section)
    }


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) or "none"


def _label(run: Run, dotted: str) -> str:
    section, _, name = dotted.partition(".")
    return next(f.metadata["label"] for f in dataclasses.fields(getattr(run, section)) if f.name == name)
