"""The input of a training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Pairs on the training device; row k of every member is pair k. Contains what the method requested."""

    images: Float[Tensor, "n 3 s s"] | None
    """Cropped and normalized; the first view where there are two."""
    tokens: Int[Tensor, "n length"] | None
    rows: Int[Tensor, " n"] | None = None
    """Places of the pairs in the training split."""
    other_view: Float[Tensor, "n 3 s s"] | None = None
    """The same images, augmented another time."""
    step: int = 0
    """Updates made before this one: with the run's seed it decides whatever a method draws."""

    def parts(self, size: int) -> Iterator[Batch]:
        """Yield the batch in parts of `size` pairs; the last one may be smaller."""
        members = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "step"}
        present = {name: tensor.split(size) for name, tensor in members.items() if tensor is not None}
        for place in range(len(next(iter(present.values())))):
            cut = {name: pieces[place] for name, pieces in present.items()}
            yield Batch(**dict.fromkeys(members) | cut, step=self.step)
