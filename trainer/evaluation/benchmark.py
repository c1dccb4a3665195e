"""Evaluate a run's model on a data set: several tasks in order, with each embedding computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8

from trainer.analysis import corruptions
from trainer.analysis.distinct import Matching, matching, numbered
from trainer.analysis.neighbors import NEIGHBORS, voted
from trainer.analysis.progress import Progress, silent
from trainer.analysis.retrieval import question_ranks
from trainer.analysis.tiled_neighbors import nearest
from trainer.analysis.word_scores import class_words
from trainer.analysis.zero_shot import class_weights, grouped, predict
from trainer.data.pairs import DataError
from trainer.data.tokenizers import AnyTokenizer
from trainer.evaluation import questions, tasks
from trainer.evaluation.caption_answers import prompt_likelihoods
from trainer.evaluation.caption_choice import Negatives, choose, swapped
from trainer.evaluation.fine_tuning import SHARES, FineTuned, Some, fine_tune
from trainer.evaluation.protocol_factors import Factor, Reading, explained
from trainer.evaluation.retrieval_protocol import DIRECTIONS, RetrievalProtocol
from trainer.evaluation.task_data import TaskBatch, TaskData
from trainer.evaluation.word_answers import word_logits
from trainer.evaluation.zero_shot_protocol import ZeroShotProtocol
from trainer.inference.batches import embed_features, embed_images, embed_tokens
from trainer.methods import BagOfWords, CaptionPrediction
from trainer.metrics import RECALL_HEADING
from trainer.models import TwoTowers
from trainer.models.backbone import backbone
from trainer.prompt_suites import lacks_classes
from trainer.store.question import Question, retrieval_question
from trainer.store.task_records import TaskRecord

TASKS: Final = (
    *("zero_shot", "retrieval", "linear_probe", "few_shot", "fine_tune", "knn", "robustness"),
    *("caption_choice", "zero_shot_protocol", "retrieval_protocol"),
)
AT_ONCE: Final = 256


@dataclass(frozen=True)
class Subject:
    """A model under evaluation: towers in evaluation mode."""

    towers: TwoTowers
    tokenizer: AnyTokenizer
    context_length: int
    device: torch.device
    inv_tau: float  # Its own inverse temperature; NaN where it has none.
    # What names classes of images, of a model that predicts the words of captions.
    namer: BagOfWords | CaptionPrediction | None = None
    logit_bias: float | None = None  # Of SigLIP's sigmoid; None for a softmax.


class Evaluation:
    """One model on one data set; embeddings are shared by tasks.

    Whatever asks for a class, or learns one, does so once for each distinct picture: its rows with other captions are
    the same item.

    Attributes:
        of: What probes and neighbors read: `embeddings`, or `features` before the projection.
    """

    def __init__(
        self,
        subject: Subject,
        data: TaskData,
        *,
        shift: TaskData | None = None,
        features: bool = False,
        reading: Callable[[], Reading] | None = None,
        progress: Progress = silent,
    ) -> None:
        """Create it without embedding.

        Args:
            shift: A second data set, for robustness.
            features: Lets probes use features, which need a known projection.
            reading: How the images are read by the published preprocessing and others; None: they cannot be.
        """
        self.subject, self.data, self._shift, self._reading = subject, data, shift, reading
        visual = subject.towers.visual
        reads_features = features and visual is not None and backbone(visual) is not None
        self.of: Literal["embeddings", "features"] = "features" if reads_features else "embeddings"
        self._progress = progress
        self._kept: dict[str, Any] = {}
        label = data.numbers_of(data.tried.labels)
        self._known = data.tried.pictures(label >= 0)
        self._label = label[self._known]
        targets = data.numbers_of(data.train.labels)
        self._train_rows = data.train.pictures(targets >= 0, without=data.tried if data.of_one_split else None)
        self.targets = targets[self._train_rows]

    def possible(self) -> dict[str, str]:
        """Return task -> why it is not available; empty if it is."""
        towers, has_classes = self.subject.towers, bool(len(self._known))
        no_image = "" if towers.visual is not None else "The run has no image tower."
        no_text = "" if towers.text is not None else "The run has no text tower."
        no_class = "" if has_classes else lacks_classes()
        no_train = "" if len(set(self.targets.tolist())) > 1 else "There are no labeled pairs to learn from."
        learned = no_image or no_class or no_train
        return {
            "zero_shot": no_image or no_class or (self._no_words() if self.subject.namer else no_text),
            "retrieval": no_image or no_text,
            "linear_probe": learned,
            "few_shot": learned,
            "fine_tune": learned,
            "knn": learned,
            "robustness": no_image or (learned if no_text else ""),
            "caption_choice": no_image or no_text or self._no_cosines() or self._no_negatives(),
            "zero_shot_protocol": no_image or no_class or no_text or self._no_cosines() or self._no_reading(),
            "retrieval_protocol": no_image or no_text or self._no_cosines() or self._no_reading(),
        }

    def _no_negatives(self) -> str:
        if len(self._negatives()):
            return ""
        return "No caption has two colors, a relation such as left of, or things around one, to exchange."

    def _no_reading(self) -> str:
        return "" if self._reading is not None else "Images have to be read again, which embeddings do not allow."

    def _no_cosines(self) -> str:
        return "Its answers are not cosines of prompts." if self.subject.namer else ""

    def _no_words(self) -> str:
        """Return why no class can be named: a bag of words needs a learned word in the class name."""
        if self.data.suite is not None and self.data.suite.sentences:
            return "It names classes by words or templates, not by sentences of single classes."
        if not isinstance(self.subject.namer, BagOfWords):
            return ""
        names = self.data.suite.classes if self.data.suite else ()
        return "" if class_words(names, self.subject.namer.words).any() else "It has learned no word of any class."

    def run(self, task: str) -> TaskRecord:
        """Run one task.

        Raises:
            DataError: It cannot be done with this model and these data.
        """
        if reason := self.possible()[task]:
            raise DataError(f"{task.replace('_', ' ')} cannot be measured: {reason} Choose another task.")
        record = getattr(self, f"_{task}")()
        return replace(record, question=self._question(record))

    def _question(self, record: TaskRecord) -> Question:
        details, suite = record.details, self.data.suite
        if record.task == "retrieval_protocol":
            return Question(record.task, record.n, gallery=record.n, protocol="every caption an item of its own")
        if record.task == "retrieval":
            texts, images, majority = details["captions"], details["images"], details.get("majority", 0)
            return retrieval_question(record.n, texts=texts, images=images, majority=majority)
        if record.task == "caption_choice":
            counts = ", ".join(f"{kind} {kind_facts['n']:,}" for kind, kind_facts in details["kinds"].items())
            return Question(record.task, record.n, protocol=f"{details['source']}: {counts}")
        if record.task == "robustness":
            return questions.robustness(record.n, suite, details)
        assert suite is not None, "what asks for classes has been refused without any"
        if record.task == "zero_shot":
            return questions.zero_shot(record.n, suite, by=details.get("by", "prompts"))
        if record.task == "zero_shot_protocol":
            zero_shot_question = questions.zero_shot(record.n, suite)
            return replace(zero_shot_question, task=record.task, protocol=f"published protocol, {details['metric']}")
        learned = {"rows": len(self.targets), "source": self.data.source, "of": details.get("of", "embeddings")}
        return questions.learned(record.task, record.n, suite, **learned, more=questions.how(record.task, details))

    # -- the tasks ---------------------------------------------------------------------------------------------

    def _zero_shot(self) -> TaskRecord:
        suite = self.data.suite
        assert suite is not None
        about: dict[str, Any] = {
            "classes": list(suite.classes),
            "templates": list(suite.templates),
            "suite": suite.name,
        }
        about |= {"sentences": sum(len(prompts) for prompts in suite.sentences.values())} if suite.sentences else {}
        if isinstance(self.subject.namer, BagOfWords):
            scores = self._word_scores(self.subject.namer)[self._known]
            measured = tasks.word_zero_shot(scores, self.subject.namer.words, suite.classes, self._label)
            return self._record("zero_shot", measured, **about | {"templates": []})
        if isinstance(self.subject.namer, CaptionPrediction):
            measured = tasks.likelihood_zero_shot(self._likelihoods(self.subject.namer), self._label)
            return self._record("zero_shot", measured, **about)
        logits: dict[str, Any] = {"inv_tau": self.subject.inv_tau, "bias": self.subject.logit_bias}
        measured = tasks.zero_shot(self._tried()[self._known], self._prompts(), self._label, **logits)
        return self._record("zero_shot", measured, **about)

    def _retrieval(self) -> TaskRecord:
        text = self._texts()
        measured = tasks.retrieval(self._tried(), text, self._matching())
        tried = self.data.tried
        return tasks.record("retrieval", measured, paths=tried.paths, total=tried.whole)

    def _linear_probe(self) -> TaskRecord:
        train, tried = self._probe_rows()
        measured = tasks.probe(train, self.targets, tried, self._label, self._classes(), progress=self._progress)
        return self._record("linear_probe", measured, **self._about_classes(), of=self.of)

    def _few_shot(self) -> TaskRecord:
        train, tried = self._probe_rows()
        measured = tasks.few_shots(train, self.targets, tried, self._label, self._classes(), progress=self._progress)
        return self._record("few_shot", measured, of=self.of)

    def _fine_tune(self) -> TaskRecord:
        shares = len(SHARES)
        done = iter(range(shares))

        def learn(rows: Int[np.ndarray, " k"], epochs: int) -> FineTuned:
            number = next(done)
            return fine_tune(
                self.subject.towers,
                Some(self.data.train.images, self._train_rows[rows]),
                self.targets[rows],
                Some(self.data.tried.images, self._known),
                self._classes(),
                where=self.subject.device,
                epochs=epochs,
                progress=lambda share, note: self._progress((number + share) / shares, note),
            )

        n_pictures = self.data.train.whole_pictures
        measured = tasks.fine_tuning(learn, self.targets, self._label, n_labels=n_pictures)
        return self._record("fine_tune", measured, suite=self.data.suite.name)

    def _knn(self) -> TaskRecord:
        train, tried = self._probe_rows(unit=True)
        measured = tasks.knn(train, self.targets, tried, self._label)
        return self._record("knn", measured, **self._about_classes(), of=self.of)

    def _robustness(self) -> TaskRecord:
        """Return accuracy under corruption and on the second data set: zero-shot if there are classes, else recall."""
        tried = self.data.tried
        right, measure = self._judged(self._tried())
        clean = float(right.mean())
        metrics: dict[str, float] = {"robust_clean": clean}
        curves: dict[str, list[float]] = {}
        arrays: dict[str, np.ndarray] = {"right": right}
        for number, kind in enumerate(corruptions.KINDS):
            curves[kind] = []
            for severity in corruptions.SEVERITIES:
                self._progress((number + severity / 5) / len(corruptions.KINDS), f"Corrupting images: {kind}")
                worse = self._embedded(tried.images, kind=kind, severity=severity)
                arrays[f"{kind}_{severity}"] = now = self._judged(worse)[0]
                curves[kind].append(float(now.mean()))
            metrics[f"robust_{kind}"] = float(np.mean(curves[kind]))
        metrics["robust_mean"] = float(np.mean([metrics[f"robust_{kind}"] for kind in corruptions.KINDS]))
        metrics["robust_kept"] = metrics["robust_mean"] / clean if clean else float("nan")
        details: dict[str, Any] = {"curves": curves, "measure": measure, "severities": list(corruptions.SEVERITIES)}
        if self._shift is not None:
            shift = Evaluation(self.subject, self._shift, progress=self._progress)
            moved = shift._judged(shift._tried())
            metrics |= {"shift": float(moved[0].mean()), "shift_drop": clean - float(moved[0].mean())}
            about = {"dataset": self._shift.dataset, "split": self._shift.split, "n": len(moved[0])}
            details["shift"] = about | {"measure": moved[1]}
        rows = self._matching().texts.asking() if measure == "image_to_text_R@1" else self._known
        paths = [tried.paths[row] for row in rows.tolist()]
        return tasks.record("robustness", (metrics, details, arrays), paths=paths, total=tried.whole_pictures)

    def _caption_choice(self) -> TaskRecord:
        negatives, tried = self._negatives(), self.data.tried
        false = self._sentences(negatives.caption, "Embedding false captions")
        metrics, details, arrays = choose(self._tried(), self._texts(), negatives, false)
        rows = arrays.pop("row").tolist()
        arrays["caption"] = np.array([tried.captions[row] for row in rows], str)
        source = f"negatives of {self.data.dataset}" if tried.negatives is not None else "captions with words exchanged"
        paths = [tried.paths[row] for row in rows]
        return tasks.record("caption_choice", (metrics, details, arrays), paths=paths, total=len(paths), source=source)

    def _negatives(self) -> Negatives:
        """Return the false captions that come with the data, else minimal swaps of each distinct picture's caption."""
        tried = self.data.tried
        if tried.negatives is not None:
            return tried.negatives
        first = tried.pictures(np.ones(len(tried), bool))
        return self._once("negatives", lambda: swapped(tried.captions, first))

    def _zero_shot_protocol(self) -> TaskRecord:
        reading = self._reread()
        protocol = ZeroShotProtocol(self.subject, self.data, reading)
        split = Factor("split", "Split", self.data.split, "another", "The data has no other split with these classes.")
        other_answers = None
        if reading.other is not None:
            split = replace(split, changed=f"{reading.other.split}, n = {len(reading.other.tried):,}", why_not="")
            other_answers = protocol.other_split(reading.other)
        details, arrays = explained(
            protocol.factors(), protocol.answers, protocol.unit, split=(split, other_answers), progress=self._progress
        )
        metrics = {"protocol_zero_shot": details["published"], "protocol_zero_shot_changed": details["changed"]}
        about = {"metric": "mean per class" if protocol.per_class else "accuracy", "suite": protocol.suite.name}
        parts = metrics, {"measures": {"zero_shot": details}} | about, arrays | {"label": protocol.label}
        tried = self.data.tried
        return tasks.record("zero_shot_protocol", parts, paths=tried.paths, total=tried.whole)

    def _retrieval_protocol(self) -> TaskRecord:
        reading, tried = self._reread(), self.data.tried
        image = self._embedded(reading.tried, note="Embedding images by the published preprocessing")
        protocol = RetrievalProtocol(tried, image, self._texts())
        measures: dict[str, Any] = {}
        metrics: dict[str, float] = {}
        arrays: dict[str, np.ndarray] = {}
        for direction in DIRECTIONS:
            details, answers = explained(
                protocol.factors(), partial(protocol.answers, direction), protocol.unit, progress=self._progress
            )
            measures[direction] = details
            metrics |= {f"protocol_{direction}_R@1": details["published"]}
            arrays |= {f"{direction}_{name}": right for name, right in answers.items()}
        parts = metrics, {"measures": measures, "metric": RECALL_HEADING}, arrays
        return tasks.record("retrieval_protocol", parts, paths=tried.paths, total=tried.whole)

    def _reread(self) -> Reading:
        assert self._reading is not None, "what reads images again has been refused without them"
        return self._once("reading", self._reading)

    def _judged(self, image: Float[np.ndarray, "n d"]) -> tuple[np.ndarray, str]:
        """Return which images are classified or retrieved correctly, and by which measure."""
        if self.subject.towers.text is not None and not self.possible()["zero_shot"]:
            weights = class_weights(self._prompts())
            return predict(image[self._known], weights) == self._label, "zero_shot_acc1"
        if self.subject.towers.text is not None:
            return question_ranks(image, self._texts(), self._matching().texts) == 1, "image_to_text_R@1"
        predicted = voted(self.targets, *nearest(image[self._known], self._train(), NEIGHBORS))
        return predicted == self._label, "knn_acc1"

    def _record(self, task: str, measured: tuple, **details: Any) -> TaskRecord:
        tried = self.data.tried
        paths = [tried.paths[row] for row in self._known.tolist()]
        return tasks.record(task, measured, paths=paths, total=tried.whole_pictures, **details)

    def _about_classes(self) -> dict[str, Any]:
        return {"classes": list(self.data.suite.classes), "suite": self.data.suite.name}

    def _matching(self) -> Matching:
        """Return which captions and which images of the test pairs are identical."""
        tried = self.data.tried
        return matching(numbered(tried.captions), numbered(tried.content_of_pictures))

    # -- embeddings --------------------------------------------------------------------------------------------

    def _classes(self) -> int:
        return len(self.data.suite.classes)

    def _tried(self) -> Float[np.ndarray, "n d"]:
        return self._once("tried", lambda: self._embedded(self.data.tried.images, note="Embedding images"))

    def _train(self) -> Float[np.ndarray, "n d"]:
        note = "Embedding images to learn from"
        return self._once("train", lambda: self._embedded(self.data.train.images, note=note)[self._train_rows])

    def _probe_rows(self, *, unit: bool = False) -> tuple[Float[np.ndarray, "n w"], Float[np.ndarray, "m w"]]:
        """Return the probes' training and test rows; with `unit`, rows of length 1."""
        if self.of == "embeddings":
            return self._train(), self._tried()[self._known]
        rows = self._train_features(), self._tried_features()[self._known]
        return (_unit(rows[0]), _unit(rows[1])) if unit else rows

    def _tried_features(self) -> Float[np.ndarray, "n w"]:
        note = "Embedding images before the projection"
        return self._once("tried features", lambda: self._embedded(self.data.tried.images, note=note, features=True))

    def _train_features(self) -> Float[np.ndarray, "n w"]:
        note = "Embedding images to learn from, before the projection"
        images = self.data.train.images
        return self._once("train features", lambda: self._embedded(images, note=note, features=True)[self._train_rows])

    def _word_scores(self, method: BagOfWords) -> Float[np.ndarray, "n k"]:
        subject, images = self.subject, self.data.tried.images
        return self._once("words", lambda: word_logits(subject.towers, method, images, subject.device))

    def _likelihoods(self, method: CaptionPrediction) -> Float[np.ndarray, "n c"]:
        subject, images = self.subject, self.data.tried.images[self._known]
        assert self.data.suite is not None
        return prompt_likelihoods(subject.towers, method, images, self.data.suite, subject.device)

    def _texts(self) -> Float[np.ndarray, "n d"]:
        return self._once("texts", lambda: self._sentences(self.data.tried.captions, "Embedding captions"))

    def _prompts(self) -> Float[np.ndarray, "c t d"]:
        suite = self.data.suite
        assert suite is not None
        prompts = [suite.prompts_of(name) for name in suite.classes]
        sentences, counts = [prompt for each in prompts for prompt in each], [len(each) for each in prompts]
        return self._once("prompts", lambda: grouped(self._sentences(sentences, "Embedding prompts"), counts))

    def _once(self, name: str, make: Any) -> Any:
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def _embedded(
        self,
        images: UInt8[np.ndarray, "n s s 3"],
        *,
        kind: str = "",
        severity: int = 0,
        note: str = "",
        features: bool = False,
    ) -> Float[np.ndarray, "n d"]:
        embed, rows = embed_features if features else embed_images, []
        for start in range(0, len(images), AT_ONCE):
            part = np.asarray(images[start : start + AT_ONCE])
            if kind:
                part = corruptions.corrupt(part, kind, severity, first=start)
            else:
                self._progress(start / len(images), f"{note}: {start:,} of {len(images):,}")
            rows.append(embed(self.subject.towers, part, self.subject.device))
        return np.concatenate(rows)

    def _sentences(self, sentences: Sequence[str], note: str) -> Float[np.ndarray, "n d"]:
        rows = []
        for start in range(0, len(sentences), AT_ONCE):
            self._progress(start / len(sentences), f"{note}: {start:,} of {len(sentences):,}")
            tokens = self.subject.tokenizer.encode(
                list(sentences[start : start + AT_ONCE]), self.subject.context_length
            )
            rows.append(embed_tokens(self.subject.towers, tokens, self.subject.device))
        return np.concatenate(rows)


class Stored(Evaluation):
    """An evaluation of a snapshot's existing embeddings, without corruption tasks."""

    def __init__(
        self,
        subject: Subject,
        data: TaskData,
        *,
        image: Float[np.ndarray, "n d"] | None,
        text: Float[np.ndarray, "n d"] | None,
        train: Float[np.ndarray, "m d"] | None,
        features: tuple[Float[np.ndarray, "n w"], Float[np.ndarray, "m w"]] | None = None,
        progress: Progress = silent,
    ) -> None:
        """Create it from a snapshot's contents; probes use `features` of test and training rows if given.

        `train` and the second of `features` have a row for every pair to learn from.
        """
        super().__init__(subject, data, progress=progress)
        arrays = {"tried": image, "texts": text, "train": None if train is None else train[self._train_rows]}
        if features is not None:
            self.of = "features"
            arrays |= {"tried features": features[0], "train features": features[1][self._train_rows]}
        self._kept |= {name: np.asarray(rows, np.float32) for name, rows in arrays.items() if rows is not None}

    def possible(self) -> dict[str, str]:
        """Return the same as for images, except for tasks that need the images themselves."""
        absent = "" if "tried" in self._kept else "The snapshot has no image embeddings."
        reasons = {task: absent or reason for task, reason in super().possible().items()}
        reasons["fine_tune"] = "A snapshot holds embeddings, no images that a tower could learn from."
        return reasons | {"robustness": "A snapshot holds embeddings, no images that could be corrupted."}


def _unit(rows: Float[np.ndarray, "n w"]) -> Float[np.ndarray, "n w"]:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


__all__ = ["TASKS", "Evaluation", "Stored", "Subject", "TaskBatch"]
