"""The input of a training step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final

from jaxtyping import Float, Int
from torch import Tensor

_OF_ALL: Final = ("step", "whole", "start")
"""Members that are not cut into parts."""


@dataclass(frozen=True)
class Batch:
    """Pairs on the training device, but for what a method reads on the CPU; row k of every member is pair k.

    Contains what the method requested.
    """

    images: Float[Tensor, "n 3 s s"] | None
    """Cropped and normalized; the first view where there are two."""
    tokens: Int[Tensor, "n length"] | None
    rows: Int[Tensor, " n"] | None = None
    """Places of the pairs in the training split, on the CPU: to read them back from a GPU would wait for it."""
    other_view: Float[Tensor, "n 3 s s"] | None = None
    """The same images, augmented another time."""
    step: int = 0
    """Updates made before this one: with the run's seed it decides whatever a method draws."""
    whole: Batch | None = None
    """The batch of which this is a part; of another rank's pairs it has rows and tokens only. None: this is all."""
    start: int = 0
    """Place of the first pair in the whole batch."""
    host_tokens: Int[Tensor, "n length"] | None = None
    """The tokens on the CPU."""

    def __len__(self) -> int:
        """Return the number of pairs."""
        members = (self.images, self.tokens, self.rows)
        return len(next(tensor for tensor in members if tensor is not None))

    @property
    def all(self) -> Batch:
        """The whole batch, of which this may be a part."""
        return self.whole or self

    def parts(self, size: int) -> Iterator[Batch]:
        """Yield the batch in parts of `size` pairs; the last one may be smaller."""
        members = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _OF_ALL}
        present = {name: tensor.split(size) for name, tensor in members.items() if tensor is not None}
        for number in range(len(next(iter(present.values())))):
            cut = {name: pieces[number] for name, pieces in present.items()}
            start = self.start + number * size
            yield Batch(**dict.fromkeys(members) | cut, step=self.step, whole=self.all, start=start)
