"""A batch of three pairs with every number of its loss, and the effect of temperature on two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from trainer.analysis.toy_batch import log_softmax, toy_batch
from trainer.charts.marks import NumberTable, Panel, ShadedTable, one_number
from trainer.charts.settings import cells, held
from trainer.charts.spec import Chart, no_data
from trainer.config.fields import option

METHOD: Final = """\
Toy batch. Logits are similarities over the temperature τ. The softmax of a row is the distribution of an image \
over texts, that of a column of a text over images; −ln of the matched share is the cross-entropy, and the \
loss is the mean of both directions (Radford et al., CLIP, 2021, figure 3). With the dot products shown first it \
is 0.780074, with cosines 0.712431, and with cosines at τ = 0.07 it is 0.000438; notes that print 0.717 have \
slips on the way."""

SOURCE: Final = (
    "Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021, figure 3 "
    "(symmetric cross-entropy); softmax with temperature as in section 2.3."
)


@dataclass(frozen=True)
class ToyBatchSettings:
    """The settings of the chart: vectors, similarity, temperature."""

    similarity: Literal["dot", "cosine"] = option(
        "dot", "Similarity", "The cosine divides the dot product by both lengths, as CLIP does."
    )
    temperature: float = option(
        1.0,
        "Temperature τ",
        "Divides every similarity: below 1 it sharpens, above 1 it flattens. CLIP ends near 0.01.",
        low=0.01,
        high=10.0,
        log=True,
    )
    image: tuple[float, ...] = cells(
        (0.8, 0.2, 0.1, 0.1, 0.9, 0.2, 0.3, 0.1, 0.9),
        "Image vectors I",
        "Row i is image i.",
        columns=3,
        rows=("I₁", "I₂", "I₃"),
    )
    text: tuple[float, ...] = cells(
        (0.9, 0.1, 0.0, 0.2, 0.8, 0.0, 0.1, 0.2, 0.9),
        "Text vectors T",
        "Row i belongs to image i.",
        columns=3,
        rows=("T₁", "T₂", "T₃"),
    )
    scores: tuple[float, ...] = cells(
        (0.9, 0.1, 0.2, 0.8, 0.6, 0.4, 0.3, 0.5),
        "Scores of two classes",
        "A row is one input.",
        columns=2,
        rows=("x₁", "x₂", "x₃", "x₄"),
    )


TEMPERATURE: Final = (
    "The same softmax for two classes: a high temperature flattens the shares, a low one sharpens them until the "
    "larger score takes everything; τ = 1 leaves the scores as they are."
)


def draw(_data: None, settings: ToyBatchSettings) -> Panel:
    """Draw the batch step by step from the vectors to the loss."""
    image, text = np.reshape(settings.image, (3, 3)), np.reshape(settings.text, (3, 3))
    parts, cosine = ("1", "2", "3"), settings.similarity == "cosine"
    batch = toy_batch(image, text, settings.temperature, cosine=cosine)
    images, texts = (tuple(f"{letter}{sub}" for sub in "₁₂₃") for letter in "IT")
    diagonal = tuple((i, i) for i in range(3))
    sign = "cos(I, T)" if cosine else "I Tᵀ"
    top = float(np.abs(batch.logits).max()) or 1.0
    scores, digits = np.reshape(settings.scores, (4, 2)), 5 if settings.temperature < 0.2 else 3
    shares = np.exp(log_softmax(scores / settings.temperature, axis=1))
    inputs = (
        ShadedTable("image", "Image vectors I", images, parts, image, 3, top=0),
        ShadedTable("text", "Text vectors T", texts, parts, text, 3, top=0),
        ShadedTable("logits", f"Logits {sign} / τ", images, texts, batch.logits, 4, top=top, marked=diagonal),
    )
    loss, by_row, by_column = "−ln p", "Softmax of rows: image → text", "Softmax of columns: text → image"
    to_text = np.column_stack([batch.to_text, batch.image_losses])
    to_image = np.vstack([batch.to_image, batch.text_losses])
    softmax = (
        ShadedTable("to_text", by_row, images, (*texts, loss), to_text, 4, margins=(0, 1), marked=diagonal),
        ShadedTable("to_image", by_column, (*images, loss), texts, to_image, 4, margins=(1, 0), marked=diagonal),
    )
    names = tuple(f"{a:g}, {b:g}" for a, b in scores)
    two_classes = ShadedTable(
        "two_classes", "Softmax of the scores over τ", names, ("class 1", "class 2"), shares, digits
    )
    facts = (
        one_number("Total loss", batch.total, 6, "Mean of both directions.", strong=True),
        one_number("Image → text", float(batch.image_losses.mean()), 6, "Mean cross-entropy of the rows."),
        one_number("Text → image", float(batch.text_losses.mean()), 6, "Mean cross-entropy of the columns."),
        one_number("Guessing, ln 3", float(np.log(3)), 6, "The loss when all similarities are equal."),
    )
    numbers = NumberTable("numbers", "Loss", ("value",), facts, badges=False, note="½ (image → text + text → image)")
    rows = (inputs, softmax, (two_classes, numbers))
    return Panel(title="Toy batch", head=(held(settings),), rows=rows, notes=(TEMPERATURE, SOURCE))


CHART: Final = Chart(
    view="losslab",
    label="Toy batch",
    question="How does a batch of three pairs become one number?",
    cost="Computed from its settings alone: no data are read.",
    method=METHOD,
    settings=ToyBatchSettings,
    needs="none",
    compute=no_data,
    draw=draw,
    quick=True,
)
