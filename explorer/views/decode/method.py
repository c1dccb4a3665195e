"""The text of the help of the Decode view."""

from __future__ import annotations

from typing import Final

METHOD: Final = """\
A decoder is trained on the frozen embeddings of a run: `trainer fit --preset decoder-scenes --of RUN`. Two \
decoders are shown together only if size, seed, pairs, order and steps are equal; then what differs comes from the \
embeddings.

Mean picture: transposed convolutions on squared error give E[picture | embedding] (Dosovitskiy and Brox 2016): \
blurred exactly where the embedding does not know.

Samples: a U-Net foresees the velocity of noised pictures (cosine schedule x_t = sqrt(abar) x_0 + sqrt(1 - abar) \
eps; Salimans and Ho 2022), given the embedding as in unCLIP (Ramesh et al. 2022). DDIM steps lead from noise to a \
picture; the six noises are the same for all decoders. What stays the same over the noises was read from the \
embedding (Bordes et al. 2022, RCDM).

Not kept: the standard deviation of each pixel over the noises, mean over the colors, in percent of a pixel's \
range. White is 30 % and more.

A sentence's embedding differs from a picture's: a prior, trained on the same pairs, leads from one to the other. \
Beside it stand three baselines: the text as it is, the text with the modality gap closed, and ridge regression.

Moves: slerp to a second picture; the difference of two texts added; a principal direction of the training images \
set to its mean (drop) or moved along. Directions are those whose number Geometry counts: the line above the pictures \
says how much of the variance each run has along it, and a click on the spectrum there moves along it.

Limits: trainer decode DECODER --measure --limits trains an equal decoder of the true attributes (color, shape, \
ground, relation). What a judge cannot read off its samples either is lost by the decoder, not by an embedding. \
What was measured stands below the pictures.

Caveats: the decoder is small. What it does not draw may be in the embedding all the same, and what it draws may be \
what all training pictures share: at 32 or 64 pixels shapes are blurred by the decoder, too. Guidance above 1 makes \
pictures that tell more of the embedding than was learned, and less varied ones."""
