"""The method of an objective that a plug-in adds: its loss on the embeddings of both towers."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from trainer.errors import UserError
from trainer.losses.right_answers import Answers
from trainer.methods.image_text import Embeddings, ImageText


class PluginPairs(ImageText):
    """An objective of a plug-in; it has no parameters and masks no duplicates."""

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the loss of the plug-in.

        Raises:
            UserError: It is no scalar.
        """
        value = self.choice.loss(image, text)
        if not isinstance(value, Tensor) or value.ndim:
            raise UserError(f"The loss of {self.choice.label} is not a scalar. Correct the plug-in, then resume.")
        return value
