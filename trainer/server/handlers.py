"""Handlers of the requests."""

from __future__ import annotations

import dataclasses
import io
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trainer import messages
from trainer.analysis.progress import Progress, part_of
from trainer.inference.class_embeddings import class_texts
from trainer.inference.embed import embed_files, embed_sentences
from trainer.inference.model_cache import AnswerError, ModelCache
from trainer.inference.predictions import predict
from trainer.inference.saliency import saliency_of
from trainer.store import Workspace, derived
from trainer.untrusted import confined

if TYPE_CHECKING:
    from trainer.inference.decode import OpenDecoders


class RequestHandlers:
    """Handles requests about the runs of one workspace; heavy libraries are imported on first use."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._models = ModelCache(workspace)
        self._decoders: OpenDecoders | None = None

    def answer(self, question: messages.Question, progress: Progress) -> dict[str, Any]:
        """Return the response to `question`, as its class documents it.

        Raises:
            UserError: What the person can mend.
        """
        ways = {
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
            messages.CheckData: self._check_data,
            messages.ReplayStep: self._replay_step,
            messages.WriteCleanedList: self._write_cleaned_list,
        }
        return ways[type(question)](question, progress)

    def _warm_up(self, question: messages.WarmUp, progress: Progress) -> dict[str, Any]:
        if question.projections:
            from trainer import projection

            progress(0.0, "loading UMAP")
            projection.warm_up()
            return {"runs": [], "device": "cpu"}
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
                missing[str(run)] = str(error)
                continue
            # The first pass through a network chooses its kernels, which takes longer than the answer itself.
            if opened.model.visual is not None:
                opened.embed_images(np.full((1, opened.image_size, opened.image_size, 3), 127, np.uint8))
            if opened.model.text is not None:
                opened.embed_texts(["warm"])
            warm.append(run)
        return {"runs": warm, "missing": missing, "device": device}

    def _classify(self, question: messages.Classify, progress: Progress) -> dict[str, Any]:
        return predict(self._models, **dataclasses.asdict(question), progress=progress)

    def _embed_images(self, question: messages.EmbedImages, progress: Progress) -> dict[str, Any]:
        embedded = embed_files(self._models.get(question.run, question.step).opened, question.images, progress)
        return {
            "array": self._keep(question.run, embedded.vectors),
            "images": list(embedded.images),
            "unreadable": embedded.unreadable,
        }

    def _embed_texts(self, question: messages.EmbedTexts, progress: Progress) -> dict[str, Any]:
        vectors = embed_sentences(self._models.get(question.run, question.step).opened, question.texts, progress)
        return {"array": self._keep(question.run, vectors)}

    def _embed_classes(self, question: messages.EmbedClasses, progress: Progress) -> dict[str, Any]:
        return {"file": str(class_texts(self._models, **dataclasses.asdict(question), progress=progress))}

    def _saliency(self, question: messages.Saliency, progress: Progress) -> dict[str, Any]:
        computed = saliency_of(self._models, **dataclasses.asdict(question), progress=progress)
        return {
            "array": self._keep(question.runs[0], computed.maps),
            "image": self._keep(question.runs[0], computed.image),
            "cosines": list(computed.cosines),
            "steps": list(computed.steps),
        }

    def _decode(self, question: messages.Decode, progress: Progress) -> dict[str, Any]:
        from trainer.inference.decode import DecodeRequest, OpenDecoders, chart_of, decode

        if self._decoders is None:
            self._decoders = OpenDecoders(self._workspace)
        fields = {f.name: getattr(question, f.name) for f in dataclasses.fields(DecodeRequest)}
        request = DecodeRequest(**fields)
        steps = question.checkpoints or (None,) * len(question.runs)
        chart = chart_of(request, *decode(self._decoders, list(zip(question.runs, steps)), request, progress))
        listed = [
            {
                "run": run.run,
                "name": run.name,
                "of_name": run.of_name,
                "of_step": run.of_step,
                "step": run.step,
                "recovered": run.recovered if run.recovered == run.recovered else None,
                "recovered_of": run.recovered_of,
                "measured": [dataclasses.asdict(entry) for entry in run.measured],
                "measured_of": run.measured_of,
                "nearest_of": run.nearest_of,
                "nearest": [dataclasses.asdict(entry) for entry in run.nearest],
                "pictures": self._keep(run.run, np.concatenate([run.mean[None], run.samples])),
                "spread": self._keep(run.run, run.spread),
            }
            for run in chart.runs
        ]
        original = "" if chart.original is None else self._keep(question.runs[0], chart.original)
        about = {"title": chart.title, "how": chart.how, "noises": list(chart.noises)}
        return {**about, "original": original, "runs": listed}

    def _embed_independent(self, question: messages.EmbedIndependent, progress: Progress) -> dict[str, Any]:
        from trainer.evaluation.independent import embed_independent

        rows = embed_independent(self._models, question.runs, question.steps, progress)
        return {"snapshots": [str(row.folder) for row in rows]}

    def _evaluate(self, question: messages.Evaluate, progress: Progress) -> dict[str, Any]:
        from trainer.evaluation.run_tasks import EvaluationRequest, evaluate_runs

        request = EvaluationRequest(
            data=question.data,
            split=question.split or None,
            tasks=question.tasks,
            suite=question.suite or None,
            most=question.most or None,
            shift=question.shift,
            features=question.features,
        )
        steps = question.steps or (question.step,) * len(question.runs)
        done, left_out = [], {}
        for place, step in enumerate(alike := list(dict.fromkeys(steps))):
            runs = [run for run, at in zip(question.runs, steps, strict=True) if at == step]
            part = part_of(progress, place, len(alike))
            measured, lacking = evaluate_runs(self._models, runs, dataclasses.replace(request, step=step), part)
            done += measured
            at = f", step {'last' if step is None else step}" if len(alike) > 1 else ""
            left_out |= {f"{what}{at}": why for what, why in lacking.items()}
        found = [{name: getattr(one, name) for name in ("run", "step", "dataset", "split")} for one in done]
        found = [place | {"task": one.record.task} for place, one in zip(found, done, strict=True)]
        return {"done": found, "left_out": left_out}

    def _read_data(self, question: messages.ReadData, progress: Progress) -> dict[str, Any]:
        from trainer.data.survey import answer_read_data

        return answer_read_data(question, self._workspace.folder, progress)

    def _measure_run(self, question: messages.MeasureRun, progress: Progress) -> dict[str, Any]:
        from trainer import config
        from trainer.training.cost import measure_cost

        if refusal := self._workspace.refusal:
            raise AnswerError("bad_question", refusal)
        run = self._workspace.runs.bound(config.from_toml(question.config))
        return measure_cost(run, self._workspace.folder, progress, steps=question.steps).fields

    def _check_data(self, question: messages.CheckData, progress: Progress) -> dict[str, Any]:
        from trainer.evaluation.data_quality import check_data

        report = check_data(self._models, question.runs, question.steps, progress=progress)
        return {"findings": len(report.findings)}

    def _replay_step(self, question: messages.ReplayStep, progress: Progress) -> dict[str, Any]:
        from trainer.store.replay_files import write_replay
        from trainer.training.replay import record_of, replay

        self._workspace.check_mine()
        replayed = replay(self._workspace, question.run, question.step, progress=progress)
        write_replay(self._workspace.runs.get(question.run).folder, record_of(replayed))
        return {"step": replayed.step, "began": replayed.began, "verified": replayed.verified}

    def _write_cleaned_list(self, question: messages.WriteCleanedList, progress: Progress) -> dict[str, Any]:
        from trainer.evaluation.cleaned_list import write_cleaned_list

        file = Path(question.file) if question.file else None
        return dataclasses.asdict(write_cleaned_list(self._models.workspace, question.run, file, progress))

    def _project(self, question: messages.Project, progress: Progress) -> dict[str, Any]:
        from trainer.server.projection import answer_project

        return answer_project(self._workspace.folder, question, progress)

    def _place_rows(self, question: messages.PlaceRows, progress: Progress) -> dict[str, Any]:
        from trainer.server.projection import answer_place_rows

        return {"array": self._keep(question.run, answer_place_rows(question, progress))}

    def _keep(self, run: int, vectors: np.ndarray) -> str:
        name = self._workspace.runs.get(run).folder.name
        folder = confined.make_in_run(derived.root(self._workspace.folder) / "runs" / name, "scratch")
        path = folder / f"answer-{os.getpid()}-{uuid.uuid4().hex[:8]}.npy"
        with io.BufferedWriter(confined.open_file(folder, path.name, "wb")) as stream:  # type: ignore[type-var]
            np.save(stream, vectors)
        return str(path)
