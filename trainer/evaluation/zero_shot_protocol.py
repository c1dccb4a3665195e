"""What each deviation from the published protocol costs in zero-shot accuracy: why a number is not the paper's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int
from open_clip.transformer import QuickGELU
from torch import nn

from trainer.analysis.class_prompts import captioned
from trainer.analysis.distinct import numbered
from trainer.analysis.protocol_costs import ProtocolAnswers, of_classes, of_rows
from trainer.analysis.unit_rows import normalized as unit_rows
from trainer.analysis.zero_shot import class_weights, grouped, predict
from trainer.data.augment import normalized
from trainer.data.tokenizers import AnyTokenizer, HubTokenizer
from trainer.device import memory_format
from trainer.evaluation.protocol_factors import Factor, ProtocolModel, Reading
from trainer.evaluation.task_data import TaskData
from trainer.images import Preprocessing
from trainer.images.preprocessing import Interpolation, ResizeMode
from trainer.inference.batches import AT_ONCE, at_once
from trainer.models import TwoTowers
from trainer.prompt_suites import PromptSuite, plain_name, published_suite

ONE_TEMPLATE: Final = "a photo of a {}."
"""What people ask who know no suite."""
PER_CLASS: Final = ("caltech101", "fgvcaircraft", "flowers102", "oxfordiiitpet", "oxfordpets")
"""Data sets whose published metric is the mean per class (Radford et al., 2021, table 9); of the others it is accuracy.
"""
Changed = frozenset[str]
"""Names of the factors that deviate from the published protocol."""


@dataclass(frozen=True)
class _Images:
    """How images are embedded."""

    resize: bool
    interpolation: bool
    activation: bool
    precision: bool


class ZeroShotProtocol:
    """A model's answers on data whose images can be read again, under any set of deviations.

    The published protocol is that of open_clip and CLIP_benchmark: curated names, the suite of the data set, prompts
    brought to unit length before they are averaged, the model's own preprocessing, activation, tokenizer and context,
    float32, every row of the split, and the metric of the paper.
    """

    def __init__(self, subject: ProtocolModel, data: TaskData, reading: Reading) -> None:
        self.subject, self.data, self.reading = subject, data, reading
        self.suite, self.raw = curated_and_raw(data)
        self.label: Int[np.ndarray, " n"] = data.numbers_of(data.tried.labels)
        self.unit: Int[np.ndarray, " n"] = numbered(data.tried.content_of_pictures)
        self.per_class = plain_name(data.dataset).startswith(PER_CLASS)
        self._images: dict[_Images, np.ndarray] = {}
        self._texts: dict[Changed, np.ndarray] = {}

    def factors(self) -> tuple[Factor, ...]:
        """Return every factor in the order in which they are switched."""
        suite, towers = self.suite, self.subject.towers
        preprocessing, length = self.reading.preprocessing, self.subject.context_length
        prompts = len(suite.templates) or "own"
        resize, other = _others(preprocessing)
        gelu, filled = _activation(towers), isinstance(self.subject.tokenizer, HubTokenizer)
        several = len(suite.templates) > 1 or bool(suite.sentences)
        repeated = len(np.unique(self.unit[self.label >= 0])) < (self.label >= 0).sum()
        metrics = ("mean per class", "accuracy") if self.per_class else ("accuracy", "mean per class")
        return (
            Factor("names", "Class names", "curated", "raw", "" if self.raw else "The data has no other names."),
            Factor("averaging", "Averaging of prompts", "after unit length", "before",
                   "" if several else "One sentence a class: nothing is averaged."),
            Factor("templates", "Templates", f"{prompts} of the suite", f'"{ONE_TEMPLATE}"',
                   "" if suite.templates != (ONE_TEMPLATE,) else "The suite is this sentence."),
            Factor("context", "Context", f"{length} tokens", f"{length // 2} tokens", self._short_context()),
            Factor("tokenizer", "Tokenizer", "the model's",
                   "without cleaning of texts" if filled else "filled with end tokens",
                   "" if filled or hasattr(self.subject.tokenizer, "eot") else "It has no end token."),
            Factor("resize", "Resize and crop", preprocessing.resize_mode, resize),
            Factor("interpolation", "Interpolation", preprocessing.interpolation, other),
            Factor("activation", "Activation", gelu, "GELU" if gelu == "QuickGELU" else "QuickGELU",
                   "" if gelu else "The towers have neither GELU nor QuickGELU."),
            Factor("precision", "Precision", "float32", "bfloat16 (autocast)"),
            Factor("duplicates", "Repeated pictures", "each counts", "once each",
                   "" if repeated else "No picture is there twice."),
            Factor("mean", "Metric", *metrics),
        )  # fmt: skip

    def answers(self, changed: Changed) -> ProtocolAnswers:
        """Return the answers under the published protocol with these factors changed."""
        return self._judged(self._embedded(self.data, self.reading.tried, changed), changed, self.data)

    def other_split(self, data: TaskData) -> tuple[ProtocolAnswers, Int[np.ndarray, " m"]]:
        """Return the answers to another split under the published protocol, and the picture of each row."""
        image = self._image_rows(data.tried.images, _Images(False, False, False, False))
        return self._judged(image, frozenset(), data), numbered(data.tried.content_of_pictures)

    def _judged(self, image: Float[np.ndarray, "n d"], changed: Changed, data: TaskData) -> ProtocolAnswers:
        label = replace(data, suite=self.data.suite).numbers_of(data.tried.labels)
        counted = label >= 0
        if "duplicates" in changed:
            first = np.zeros(len(label), bool)
            first[data.tried.pictures(counted)] = True
            counted = counted & first
        right = predict(image, self._weights(changed)) == label
        return of_classes(right, counted, label) if self.per_class != ("mean" in changed) else of_rows(right, counted)

    # -- images ------------------------------------------------------------------------------------------------

    def _embedded(self, data: TaskData, images: np.ndarray, changed: Changed) -> Float[np.ndarray, "n d"]:
        how = _Images(*(name in changed for name in ("resize", "interpolation", "activation", "precision")))
        if how not in self._images:
            if how.resize or how.interpolation:
                images = self.reading.load(self._preprocessing(how))
            self._images[how] = self._image_rows(images, how)
        return self._images[how]

    def _preprocessing(self, how: _Images) -> Preprocessing:
        chosen = self.reading.preprocessing
        resize, interpolation = _others(chosen)
        chosen = replace(chosen, resize_mode=resize) if how.resize else chosen
        return replace(chosen, interpolation=interpolation) if how.interpolation else chosen

    @torch.inference_mode()
    def _image_rows(self, images: np.ndarray, how: _Images) -> Float[np.ndarray, "n d"]:
        towers, where = self.subject.towers, self.subject.device
        size, rows = at_once(images.shape[1], where), []
        with self._as_changed(activation=how.activation, precision=how.precision):
            for start in range(0, len(images), size):
                part = torch.from_numpy(np.array(images[start : start + size])).to(where)
                pixels = normalized(part).contiguous(memory_format=memory_format(where))
                rows.append(towers.encode_image(pixels).float().cpu().numpy())
        return np.concatenate(rows)

    # -- texts -------------------------------------------------------------------------------------------------

    def _weights(self, changed: Changed) -> Float[np.ndarray, "c d"]:
        names = self.raw if "names" in changed else self.suite.classes
        curated_of = dict(zip(names, self.suite.classes, strict=True))
        prompts = [
            (captioned(ONE_TEMPLATE, name),) if "templates" in changed else _prompts(self.suite, name, curated_of[name])
            for name in names
        ]
        of_texts = changed & {"names", "templates", "context", "tokenizer", "activation", "precision"}
        if of_texts not in self._texts:
            sentences = [sentence for each in prompts for sentence in each]
            self._texts[of_texts] = self._text_rows(sentences, of_texts)
        rows, counts = self._texts[of_texts], [len(each) for each in prompts]
        if "averaging" in changed:
            return unit_rows(grouped(rows, counts).mean(axis=1))
        return class_weights(grouped(unit_rows(rows), counts))

    @torch.inference_mode()
    def _text_rows(self, sentences: Sequence[str], changed: Changed) -> Float[np.ndarray, "p d"]:
        """Return the embeddings of prompts, not yet of unit length."""
        subject, rows = self.subject, []
        length = subject.context_length // 2 if "context" in changed else subject.context_length
        encode = _encoder(subject.tokenizer, other="tokenizer" in changed)
        with self._as_changed(activation="activation" in changed, precision="precision" in changed):
            for start in range(0, len(sentences), AT_ONCE):
                tokens = encode(list(sentences[start : start + AT_ONCE]), length).to(subject.device)
                rows.append(subject.towers.text_features(tokens).float().cpu().numpy())
        return np.concatenate(rows)

    def _short_context(self) -> str:
        """Return why prompts cannot be cut at half of the context; empty if they can."""
        try:
            self._text_rows([ONE_TEMPLATE], frozenset({"context"}))
        except (RuntimeError, IndexError, ValueError):
            return "This text tower takes texts of one length only."
        return ""

    @contextlib.contextmanager
    def _as_changed(self, *, activation: bool, precision: bool) -> Iterator[None]:
        device = self.subject.device.type
        swapped = _swapped(self.subject.towers) if activation else contextlib.nullcontext()
        with swapped, torch.autocast(device, dtype=torch.bfloat16, enabled=precision):
            yield


def _others(preprocessing: Preprocessing) -> tuple[ResizeMode, Interpolation]:
    """Return another way to make a square, and another filter."""
    resize: ResizeMode = "squash" if preprocessing.resize_mode != "squash" else "shortest"
    return resize, "bilinear" if preprocessing.interpolation == "bicubic" else "bicubic"


def _prompts(suite: PromptSuite, name: str, curated: str) -> tuple[str, ...]:
    return tuple(captioned(template, name) for template in suite.templates) or suite.prompts_of(curated)


def curated_and_raw(data: TaskData) -> tuple[PromptSuite, tuple[str, ...]]:
    """Return the suite with curated names, and what the data calls the same classes; empty where that is the same.

    Raw are the names of folders, where those are codes; or those that come with the data, where the bundled suite of
    this data set has other names for most of the same classes in the same order.
    """
    assert data.suite is not None, "what asks for classes has been refused without any"
    suite, bundled = data.suite, published_suite(data.dataset)
    if bundled is not None and len(bundled.classes) == len(suite.classes) and bundled.classes != suite.classes:
        equal = [plain_name(a) == plain_name(b) for a, b in zip(bundled.classes, suite.classes, strict=True)]
        if sum(equal) > len(equal) / 2 and not suite.sentences:
            return replace(bundled, templates=suite.templates or bundled.templates), suite.classes
    folders = {name: folder for folder, name in suite.folders.items()}
    raw = tuple(folders.get(name, name) for name in suite.classes)
    return suite, raw if raw != suite.classes else ()


def _encoder(tokenizer: AnyTokenizer, *, other: bool) -> Callable[[Sequence[str], int], torch.Tensor]:
    if not other:
        return tokenizer.encode
    if isinstance(tokenizer, HubTokenizer):
        return tokenizer.without_cleaning().encode

    def encode(texts: Sequence[str], length: int) -> torch.Tensor:
        # As the CLIPTokenizer of transformers fills rows; open_clip fills them with zeros.
        rows = tokenizer.encode(texts, length)
        return rows.masked_fill((rows == tokenizer.eot).cumsum(dim=1) > 0, tokenizer.eot)

    return encode


def _activation(towers: TwoTowers) -> str:
    """Return the activation of the towers: `GELU` or `QuickGELU`; empty for neither."""
    kinds = {type(module) for module in towers.modules()}
    return "QuickGELU" if QuickGELU in kinds else "GELU" if nn.GELU in kinds else ""


@contextlib.contextmanager
def _swapped(towers: TwoTowers) -> Iterator[None]:
    """Exchange GELU and QuickGELU in both towers for a while."""
    changed = [
        (parent, name, child)
        for parent in towers.modules()
        for name, child in parent.named_children()
        if isinstance(child, nn.GELU | QuickGELU)
    ]
    for parent, name, child in changed:
        setattr(parent, name, QuickGELU() if isinstance(child, nn.GELU) else nn.GELU())
    try:
        yield
    finally:
        for parent, name, child in changed:
            setattr(parent, name, child)
