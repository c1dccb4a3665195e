"""Published results to compare with: what a paper measured, on what, and the source."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from trainer.charts.marks import NumberRow, NumberTable
from trainer.config.default_paths import assets_dir
from trainer.metrics import metric
from trainer.prompt_suites import plain_name

_TASKS: Final = {"zero_shot": "Zero-shot", "linear_probe": "Linear probe"}


class PublishedNumber(Struct, frozen=True):
    """One published number."""

    dataset: str
    task: str  # `zero_shot`, `linear_probe` or `retrieval`.
    metric: str  # `acc1`, `mean_per_class`, or a recall of one direction.
    model: str
    pretraining: str
    epochs: str
    value: float  # Accuracy in [0, 1].
    std: float | None  # Deviation over runs; None for one run.
    runs: int  # How many were averaged.
    source: str  # Which table of which publication.

    @property
    def task_label(self) -> str:
        """What was measured, in words."""
        if "_R@" in self.metric:
            return metric(f"val/{self.metric}").label
        return _TASKS[self.task] + (", mean per class" if self.metric == "mean_per_class" else "")

    @property
    def trained(self) -> str:
        """The model's training data, and the number of epochs if published."""
        return f"{self.pretraining}, {self.epochs} epochs" if self.epochs else self.pretraining


def references(dataset: str | None = None) -> tuple[PublishedNumber, ...]:
    """Return every published number, or those of one data set, comparing names by letters and digits."""
    numbers = []
    for file in sorted((assets_dir() / "reference").glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            numbers += [_reference(row) for row in csv.DictReader(lines)]
    return tuple(number for number in numbers if dataset is None or plain_name(number.dataset) == plain_name(dataset))


def published_table(published: Sequence[PublishedNumber]) -> NumberTable:
    """Return the numbers that others have published, with the source of each as its hint."""
    lines = []
    for result in published:
        spread = f" ± {100 * result.std:.2f}" if result.std is not None else ""
        cells = (result.task_label, result.trained, f"{result.runs}", f"{100 * result.value:.2f}{spread} %")
        lines.append(NumberRow(result.model, result.source, cells))
    title = "Published numbers, of other models at full resolution"
    return NumberTable("published", title, ("Task", "Trained on", "Runs", "Accuracy"), tuple(lines), badges=False)


def _reference(row: dict[str, str]) -> PublishedNumber:
    texts: dict[str, Any] = {name: row[name] for name in row.keys() & {*PublishedNumber.__struct_fields__}}
    std = float(row["std"]) / 100 if row["std"] else None
    return PublishedNumber(**texts | {"value": float(row["value"]) / 100, "std": std, "runs": int(row["runs"])})
