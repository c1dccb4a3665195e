"""Concepts switched off or added: embeddings without some directions of a sparse dictionary, or with more of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.concepts import StandardizedRows
from trainer.analysis.distinct import DistinctItems, in_order
from trainer.analysis.retrieval import question_ranks, recall_at
from trainer.analysis.sparse_dictionary import Codes, SparseDictionary
from trainer.analysis.unit_rows import normalized


class ConceptSpaces(Struct, frozen=True):
    """A dictionary with what it was trained on."""

    dictionary: SparseDictionary  # Over all spaces.
    codes: Codes  # Of all images, then of all captions.
    spaces: tuple[StandardizedRows, ...]  # Of each run.
    held: Int[np.ndarray, " h"]  # Places of the pairs that were not learned from.
    texts: DistinctItems  # Which of their captions are right for which image.
    rows: Int[np.ndarray, " n"]  # Of the pairs in the first run's snapshot.
    pictures: Int[np.ndarray, " n"] | None = None  # Of each pair, the number of its picture; None: all differ.

    def direction(self, concept: int, space: int) -> Float[np.ndarray, " d"]:
        """Return the concept's direction in a space, at its standardized scale."""
        return np.split(self.dictionary.decoder[concept], np.cumsum(self.dictionary.widths)[:-1])[space]

    def pairs_with(self, concept: int) -> Int[np.ndarray, " k"]:
        """Return the rows of the snapshot of all pairs whose image or caption has the concept."""
        n = len(self.rows)
        return self.rows[(self.codes[:n, concept] > 0) | (self.codes[n:, concept] > 0)]

    def typical(self, concept: int) -> float:
        """Return the mean strength of the concept in the rows that have it; 0 where none has it."""
        has = self.codes[:, concept]
        return float(has[has > 0].mean()) if (has > 0).any() else 0.0


def without(
    rows: Float[np.ndarray, "n d"],
    codes: Float[np.ndarray, "n m"],
    directions: Float[np.ndarray, "k d"],
    off: Sequence[int],
) -> Float[np.ndarray, "n d"]:
    """Return x - sum_c f_c(x) d_c of standardized rows x over the concepts that are off; what is unexplained stays."""
    return rows - codes[:, list(off)] @ directions


def on_the_sphere(rows: Float[np.ndarray, "n d"], space: StandardizedRows, *, text: bool) -> Float[np.ndarray, "n d"]:
    """Return standardized rows put back at the mean of their modality and at length 1."""
    moved = rows * space.scale + (space.text if text else space.image)
    return normalized(moved).astype(np.float32)


def sides_without(
    of: ConceptSpaces, space: int, off: Sequence[int]
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n d"]]:
    """Return the unit images and captions of a run without some concepts."""
    n, coordinates = len(of.rows), of.spaces[space]
    directions = np.stack([of.direction(c, space) for c in off]) if off else np.zeros((0, coordinates.rows.shape[1]))
    edited = without(coordinates.rows, of.codes, directions.astype(np.float32), off)
    return on_the_sphere(edited[:n], coordinates, text=False), on_the_sphere(edited[n:], coordinates, text=True)


def recall_without(of: ConceptSpaces, space: int, off: Sequence[int]) -> float:
    """Return image to text R@1 of the held-out pairs of a run without some concepts, from 0 to 1."""
    image, text = (side[of.held] for side in sides_without(of, space, off))
    return recall_at(question_ranks(image, text, of.texts), 1)


def zero_shot_without(
    of: ConceptSpaces,
    space: int,
    off: Sequence[int],
    prompts: Sequence[Float[np.ndarray, "ct d"]],
    images: Int[np.ndarray, " k"],
    truth: Int[np.ndarray, " k"],
    templates: int = 1,
) -> float:
    """Return the zero-shot accuracy of some images of a run without some concepts, from 0 to 1.

    Args:
        of: The dictionary and its spaces.
        space: Of the run.
        off: Concepts that are off, in images and in class prompts.
        prompts: Unit embeddings of the class prompts, of each run, those of a class next to each other.
        images: Of the images among the pairs.
        truth: Class of each.
        templates: Prompts of a class, of which the mean is its direction.
    """
    image, _ = sides_without(of, space, off)
    standard = [
        (np.asarray(rows, np.float32) - each.text) / each.scale for rows, each in zip(prompts, of.spaces, strict=True)
    ]
    codes = of.dictionary.codes(np.concatenate(standard, axis=1).astype(np.float32))
    directions = np.stack([of.direction(c, space) for c in off]) if off else np.zeros((0, standard[space].shape[1]))
    edited = on_the_sphere(without(standard[space], codes, directions, off), of.spaces[space], text=True)
    classes = normalized(edited.reshape(-1, templates, edited.shape[1]).mean(axis=1))
    return float(((image[images] @ classes.T).argmax(axis=1) == truth).mean())


def neighbors_with(of: ConceptSpaces, space: int, query: int, concept: int, strength: float, k: int) -> list[int]:
    """Return the places of the k images nearest to the query's image plus `strength` typical strengths of a concept.

    The query's picture is left out, and of equal pictures the first one counts.
    """
    n, coordinates = len(of.rows), of.spaces[space]
    moved = coordinates.rows[query] + strength * of.typical(concept) * of.direction(concept, space)
    query_row = on_the_sphere(moved[None], coordinates, text=False)[0]
    near = on_the_sphere(coordinates.rows[:n], coordinates, text=False) @ query_row
    order = np.argsort(-near, kind="stable")
    pictures = np.arange(n) if of.pictures is None else of.pictures
    order = order[pictures[order] != pictures[query]]
    return order[in_order(pictures[order])[1][:k]].tolist()


def nearest_words(
    of: ConceptSpaces,
    concept: int,
    vocabulary: Sequence[str],
    vectors: Sequence[Float[np.ndarray, "w d"]],
) -> tuple[str, ...]:
    """Return the words whose embeddings, centered, lie nearest to a concept's direction; the mean cosine of all runs.

    A dictionary of words as in SpLiCE (Bhalla et al., 2024, https://arxiv.org/abs/2402.10376), without its sparse fit.
    """
    total = np.zeros(len(vocabulary))
    for space, rows in enumerate(vectors):
        centered = np.asarray(rows, np.float64) - np.mean(rows, axis=0, dtype=np.float64)
        direction = of.direction(concept, space).astype(np.float64)
        lengths = np.linalg.norm(centered, axis=1) * np.linalg.norm(direction)
        share = of.dictionary.shares()[concept, space]
        total += share * (centered @ direction) / np.maximum(lengths, 1e-12)
    return tuple(vocabulary[at] for at in np.argsort(-total, kind="stable")[:3])
