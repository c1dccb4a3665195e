"""Handlers of the requests."""

from __future__ import annotations

import io
import math
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer import messages
from trainer.analysis.progress import Progress
from trainer.inference.class_embeddings import class_texts
from trainer.inference.embed import embed_files, embed_sentences
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.inference.predictions import predict
from trainer.inference.saliency import saliency_of
from trainer.store import Workspace, derived
from trainer.untrusted import confined

if TYPE_CHECKING:
    from trainer.charts.decode import DecodedRun
    from trainer.inference.decode import OpenDecoders


class RequestHandlers:
    """Handles requests about the runs of one workspace; heavy libraries are imported on first use."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._models = ModelCache(workspace)
        self._decoders: OpenDecoders | None = None

    def answer(self, question: messages.Question, progress: Progress) -> object:
        """Return the answer to `question`, of its `answer_class`.

        Raises:
            UserError: What the person can mend.
        """
        handlers: dict[type, Callable[[Any, Progress], object]] = {
            messages.WarmUp: self._warm_up,
            messages.Classify: self._classify,
            messages.EmbedImages: self._embed_images,
            messages.EmbedTexts: self._embed_texts,
            messages.EmbedClasses: self._embed_classes,
            messages.Project: self._project,
            messages.PlaceRows: self._place_rows,
            messages.Saliency: self._saliency,
            messages.Decode: self._decode,
            messages.Evaluate: self._evaluate,
            messages.EmbedIndependent: self._embed_independent,
            messages.ReadData: self._read_data,
            messages.MeasureRun: self._measure_run,
            messages.CheckRanks: self._check_ranks,
            messages.CheckData: self._check_data,
            messages.ReplayStep: self._replay_step,
            messages.WriteCleanedList: self._write_cleaned_list,
        }
        return handlers[type(question)](question, progress)

    def _warm_up(self, question: messages.WarmUp, progress: Progress) -> messages.WarmUpAnswer:
        if question.projections:
            from trainer import projection

            progress(0.0, "loading UMAP")
            projection.warm_up()
            return messages.WarmUpAnswer()
        progress(0.0, "loading libraries")
        import torch

        import trainer.models  # noqa: F401  (seconds of imports, wanted now and not with the first picture)

        # A picture gains nothing from many threads, and beside a training run that keeps all cores busy every
        # operation waits until each thread has had its turn: 185 ms instead of 35 (2 cores, 8 busy processes).
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 4))
        warm, missing, device = [], {}, "cuda" if torch.cuda.is_available() else "cpu"
        for index, run in enumerate(question.runs):
            progress((index + 0.5) / len(question.runs), "opening models")
            try:
                opened = self._models.get(run).opened
            except AnswerError as error:
                missing[run] = str(error)
                continue
            # The first pass through a network chooses its kernels, which takes longer than the answer itself.
            if opened.model.visual is not None:
                opened.embed_images(np.full((1, opened.image_size, opened.image_size, 3), 127, np.uint8))
            if opened.model.text is not None:
                opened.embed_texts(["warm"])
            warm.append(run)
        return messages.WarmUpAnswer(runs=tuple(warm), missing=missing, device=device)

    def _classify(self, question: messages.Classify, progress: Progress) -> messages.ClassifyAnswer:
        return predict(self._models, question, progress)

    def _embed_images(self, question: messages.EmbedImages, progress: Progress) -> messages.EmbedAnswer:
        embedded = embed_files(self._models.get(question.run, question.step).opened, question.images, progress)
        array = self._keep(question.run, embedded.vectors)
        return messages.EmbedAnswer(array=array, images=embedded.images, unreadable=embedded.unreadable)

    def _embed_texts(self, question: messages.EmbedTexts, progress: Progress) -> messages.EmbedAnswer:
        vectors = embed_sentences(self._models.get(question.run, question.step).opened, question.texts, progress)
        return messages.EmbedAnswer(array=self._keep(question.run, vectors))

    def _embed_classes(self, question: messages.EmbedClasses, progress: Progress) -> messages.EmbedClassesAnswer:
        return messages.EmbedClassesAnswer(file=str(class_texts(self._models, question, progress)))

    def _saliency(self, question: messages.Saliency, progress: Progress) -> messages.SaliencyAnswer:
        computed = saliency_of(self._models, question, progress)
        return messages.SaliencyAnswer(
            array=self._keep(question.runs[0], computed.maps),
            image=self._keep(question.runs[0], computed.image),
            cosines=computed.cosines,
            steps=computed.steps,
        )

    def _decode(self, question: messages.Decode, progress: Progress) -> messages.DecodeAnswer:
        from trainer.inference.decode import OpenDecoders, chart_of, decode

        if self._decoders is None:
            self._decoders = OpenDecoders(self._workspace)
        chart = chart_of(question, *decode(self._decoders, question, progress))
        original = "" if chart.original is None else self._keep(question.runs[0], chart.original)
        runs = tuple(self._decoded(run) for run in chart.runs)
        return messages.DecodeAnswer(
            title=chart.title, how=chart.how, noises=chart.noises, original=original, runs=runs
        )

    def _decoded(self, run: DecodedRun) -> messages.RunDecoded:
        strip = run.reverse
        same = ("run", "name", "of_name", "of_step", "step", "recovered_of", "measured", "measured_of", "nearest")
        return messages.RunDecoded(
            **{name: getattr(run, name) for name in (*same, "nearest_of")},
            recovered=None if math.isnan(run.recovered) else run.recovered,
            pictures=self._keep(run.run, np.concatenate([run.mean[None], run.samples])),
            spread=self._keep(run.run, run.spread),
            levels=() if strip is None else strip.levels,
            reverse="" if strip is None else self._keep(run.run, np.stack([strip.noisy, strip.foreseen])),
        )

    def _embed_independent(
        self, question: messages.EmbedIndependent, progress: Progress
    ) -> messages.EmbedIndependentAnswer:
        from trainer.evaluation.independent import embed_independent

        rows = embed_independent(self._models, question.runs, question.steps, progress)
        return messages.EmbedIndependentAnswer(snapshots=tuple(str(row.folder) for row in rows))

    def _evaluate(self, question: messages.Evaluate, progress: Progress) -> messages.EvaluateAnswer:
        from trainer.evaluation.run_tasks import evaluate_runs

        done, left_out = evaluate_runs(self._models, question, progress)
        listed = tuple(
            messages.EvaluatedTask(
                run=each.run, step=each.step, dataset=each.dataset, split=each.split, task=each.record.task
            )
            for each in done
        )
        return messages.EvaluateAnswer(done=listed, left_out=left_out)

    def _read_data(self, question: messages.ReadData, progress: Progress) -> messages.ReadDataAnswer:
        from trainer.data.survey import answer_read_data

        return answer_read_data(question, self._workspace.folder, progress)

    def _measure_run(self, question: messages.MeasureRun, progress: Progress) -> messages.RunCost:
        from trainer import config
        from trainer.training.cost import measure_cost

        if refusal := self._workspace.refusal:
            raise AnswerError("bad_question", refusal)
        run = self._workspace.runs.bound(config.from_toml(question.config))
        return measure_cost(run, self._workspace.folder, progress, steps=question.steps)

    def _check_ranks(self, question: messages.CheckRanks, progress: Progress) -> messages.RankDifference:
        from trainer import config
        from trainer.scheduling.ranks import check_equal

        if refusal := self._workspace.refusal:
            raise AnswerError("bad_question", refusal)
        answer = check_equal(self._workspace.folder, config.from_toml(question.config), question.ranks, progress)
        return messages.RankDifference(equal=bool(answer["equal"]), text=str(answer["words"]))

    def _check_data(self, question: messages.CheckData, progress: Progress) -> messages.CheckDataAnswer:
        from trainer.evaluation.data_quality import check_data

        report = check_data(self._models, question.runs, question.steps, progress=progress)
        return messages.CheckDataAnswer(findings=len(report.findings))

    def _replay_step(self, question: messages.ReplayStep, progress: Progress) -> messages.ReplayStepAnswer:
        from trainer.store.replay_records import write_replay
        from trainer.training.replay import record_of, replay
        from trainer.training.word_replay import learns_words, replay_words

        self._workspace.check_mine()
        step: Any = (self._workspace, question.run, question.step)
        if learns_words(self._workspace.runs.config_of(question.run)):
            record: Any = replay_words(*step, progress=progress)
        else:
            record = record_of(replay(*step, progress=progress))
        write_replay(self._workspace.runs.get(question.run).folder, record)
        return messages.ReplayStepAnswer(step=record.step, began=record.began, verified=record.verified)

    def _write_cleaned_list(self, question: messages.WriteCleanedList, progress: Progress) -> messages.CleanedList:
        from trainer.evaluation.cleaned_list import write_cleaned_list

        file = Path(question.file) if question.file else None
        return write_cleaned_list(self._models.workspace, question.run, file, progress)

    def _project(self, question: messages.Project, progress: Progress) -> messages.ProjectAnswer:
        from trainer.server.projection import answer_project

        return answer_project(self._workspace.folder, question, progress)

    def _place_rows(self, question: messages.PlaceRows, progress: Progress) -> messages.PlaceRowsAnswer:
        from trainer.projection.fitting import placed
        from trainer.untrusted.bounded.arrays import load_npy

        points = placed(load_npy(question.vectors), question.placement, progress)
        return messages.PlaceRowsAnswer(array=self._keep(question.run, points))

    def _keep(self, run: int, vectors: np.ndarray) -> str:
        name = self._workspace.runs.get(run).folder.name
        folder = confined.make_in_run(derived.root(self._workspace.folder) / "runs" / name, "scratch")
        path = folder / f"answer-{os.getpid()}-{uuid.uuid4().hex[:8]}.npy"
        with io.BufferedWriter(confined.open_file(folder, path.name, "wb")) as stream:  # type: ignore[type-var]
            np.save(stream, vectors)
        return str(path)
