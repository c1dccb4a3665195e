"""Decode embeddings with the decoders of runs: mean pictures, samples over the same noises, what is not kept."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8

from trainer import config, data, device
from trainer.analysis import embedding_moves as moves
from trainer.analysis.lru_cache import LruCache
from trainer.analysis.progress import Progress, between
from trainer.analysis.sampling import at_most
from trainer.charts.decode import DecodedChart, DecodedRun, NearPicture, ReverseStrip, measured_of
from trainer.checkpoints import checkpoint
from trainer.data import Pairs
from trainer.data.augment import normalized
from trainer.inference.batches import embed_images, embed_tokens
from trainer.inference.model_cache import AnswerError
from trainer.inference.open_model import OpenModel, open_run
from trainer.losses import noise_schedule
from trainer.messages import Decode
from trainer.methods.decoder import DecoderPictures, parts_without_material, pictures_of, scaled
from trainer.pretrained import read_architecture
from trainer.store import RunRow, StoreError, Workspace

REFERENCE: Final = 2_048
"""Training pairs, drawn once and for all, that mean, gap, directions, ridge and nearest pictures are taken from."""
STRIP: Final = 8
"""Steps of the way from noise that are kept."""
NEAREST: Final = 3
MEASURED: Final = 256
"""Held-out pictures that a decoder is measured on while it trains."""
PRIORS: Final = ("mlp", "diffusion", "text", "gap", "ridge")
"""How a text's embedding becomes a picture's; the last three are the baselines."""
PRIOR_WORDS: Final = {
    "mlp": "text to image by the trained prior (MLP)",
    "diffusion": "text to image by the diffusion prior",
    "text": "the text's embedding as it is",
    "gap": "the text's embedding with the modality gap closed",
    "ridge": "text to image by ridge regression",
}
PENALTIES: Final = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Of the ridge regression, chosen on a quarter of the reference pairs."""
_PRIOR_STEPS: Final = 25
MOST_DECODERS: Final = 16
"""How many decode one embedding at a time: each stays in memory, with the embeddings of its training pictures."""
_KEPT: Final = 2


@dataclass(frozen=True)
class Reference:
    """Embeddings of training pairs by the decoded run."""

    pairs: Pairs  # The drawn pairs.
    whole: int  # How many there are to train on.
    image: Float[np.ndarray, "n d"]  # Unit rows.
    text: Float[np.ndarray, "n d"]  # Unit rows of their captions.

    @functools.cached_property
    def ridge(self) -> Float[np.ndarray, "e d"]:
        """Ridge weights from text to image, its penalty chosen on the last quarter."""
        cut = max(1, len(self.image) * 3 // 4)
        held = slice(cut, None)

        def cosine(penalty: float) -> float:
            weights = moves.ridge(self.text[:cut], self.image[:cut], penalty)
            return float((moves.foreseen_by_ridge(self.text[held], weights) * self.image[held]).sum(axis=1).mean())

        best = max(PENALTIES, key=cosine) if cut < len(self.image) else PENALTIES[0]
        return moves.ridge(self.text, self.image, best)


@dataclass(frozen=True)
class OpenDecoder:
    """A decoder at one checkpoint, with the towers that it decodes."""

    row: RunRow
    run: config.Run
    opened: OpenModel
    method: DecoderPictures  # The decoder's networks, in evaluation mode.
    of_name: str  # Name of the decoded run when the decoder was made.
    of_step: int  # Step at which that run is decoded.

    @property
    def schedule(self) -> dict[str, Any]:
        """What must be equal in two decoders that are compared."""
        fields = config.flatten(self.run)
        settings = {
            name: value for name, value in fields.items() if name.startswith(("objective.", "optimizer.", "data."))
        }
        settings = {
            name: value for name, value in settings.items() if name not in ("objective.of", "objective.of_step")
        }
        return settings | {"data": fields["data"], "seed": self.run.seed, "step": self.opened.step}


class OpenDecoders:
    """Recently used decoders and their reference pairs."""

    def __init__(self, workspace: Workspace, keep: int = _KEPT) -> None:
        self.workspace = workspace
        self._decoders: LruCache[tuple[int, int], OpenDecoder] = LruCache(keep)
        self._references: LruCache[tuple[int, int], Reference] = LruCache(keep)

    def get(self, run_id: int | str, step: int | None = None) -> OpenDecoder:
        """Return a decoder at a checkpoint, the newest if `step` is None.

        Raises:
            AnswerError: There is no such run, it is no decoder, or it has no such checkpoint.
        """
        try:
            run_row = self.workspace.runs.get(run_id)
        except StoreError as error:
            raise AnswerError("unknown_run", str(error)) from error
        run_config = self.workspace.runs.config_of(run_row.id)
        if not isinstance(run_config.objective, config.EmbeddingDecoder):
            raise AnswerError(
                "bad_question",
                f"Run {run_row.name!r} ({run_config.objective.label}) is not a decoder.",
                f"Train one: trainer fit --preset decoder-scenes --of {run_row.id}.",
            )
        try:
            opened = open_run(self.workspace, run_row.id, step)
        except checkpoint.CheckpointError as error:
            raise AnswerError("no_checkpoint", str(error)) from error
        return self._decoders.obtain((run_row.id, opened.step), lambda: _opened(run_row, run_config, opened))

    def reference(self, decoder: OpenDecoder, progress: Progress) -> Reference:
        """Return the reference pairs of a decoder, embedded."""
        key = (decoder.row.id, decoder.of_step)
        return self._references.obtain(key, lambda: _reference(self.workspace, decoder, progress))


@dataclass(frozen=True)
class DecodedEmbedding:
    """What one decoder makes of a request."""

    decoder: OpenDecoder
    embedding: Float[np.ndarray, " d"]  # What was decoded, a unit row.
    mean: UInt8[np.ndarray, "s s 3"]  # The mean picture.
    samples: UInt8[np.ndarray, "k s s 3"]  # One for each noise.
    # Standard deviation over the noises of each pixel, mean over colors, in 0 to 1: what is not kept.
    spread: Float[np.ndarray, "s s"]
    nearest: tuple[tuple[int, float], ...]  # Rows of the reference pairs, nearest first, and their cosines.
    reference: Reference
    reverse: ReverseStrip | None = None  # The first noise on its way to the picture.


def decode(
    decoders: OpenDecoders, request: Decode, progress: Progress
) -> tuple[UInt8[np.ndarray, "s s 3"] | None, list[DecodedEmbedding]]:
    """Return the picture as the decoders see it (None for a text), and what each decoder makes of the request.

    Raises:
        AnswerError: The request cannot be answered, or two decoders do not compare.
    """
    _check(request)
    steps = request.checkpoints or (None,) * len(request.runs)
    opened = [decoders.get(run, step) for run, step in zip(request.runs, steps, strict=True)]
    for other in opened[1:]:
        check_comparable(opened[0], other)
    original, decoded = None, []
    for index, decoder in enumerate(opened):
        report = between(progress, index / len(opened), (index + 1) / len(opened))
        reference = decoders.reference(decoder, between(report, 0.0, 1 / 3))
        row, seen = embedding_of(decoder, request, reference)
        original = seen if original is None else original
        strip = StripRecorder(request.steps) if request.reverse else None
        samples = sample(
            decoder.method,
            np.repeat(row[None], len(request.noises), axis=0),
            noises=request.noises,
            steps=request.steps,
            guidance=request.guidance,
            progress=between(report, 1 / 3, 1.0),
            strip=strip,
        )
        cosines = reference.image @ row
        best = np.argsort(-cosines, kind="stable")[:NEAREST]
        nearest = tuple((int(at), float(cosines[at])) for at in best)
        decoded.append(
            DecodedEmbedding(
                decoder,
                row,
                mean_pictures(decoder.method, row[None])[0],
                as_pixels(samples),
                (samples.std(axis=0).mean(axis=0) / 2).astype(np.float32),
                nearest,
                reference,
                None if strip is None else strip.strip,
            )
        )
    return original, decoded


def chart_of(
    request: Decode, original: UInt8[np.ndarray, "s s 3"] | None, decoded: Sequence[DecodedEmbedding]
) -> DecodedChart:
    """Return the answer for the window and for figures."""
    measured = [measured_of(embedding.decoder.row.facts, embedding.decoder.opened.step) for embedding in decoded]
    runs = [
        DecodedRun(
            index=index,
            run=embedding.decoder.row.id,
            name=embedding.decoder.row.short_name,
            of_name=embedding.decoder.of_name,
            of_step=embedding.decoder.of_step,
            step=embedding.decoder.opened.step,
            mean=embedding.mean,
            samples=embedding.samples,
            spread=embedding.spread,
            nearest=tuple(
                NearPicture(embedding.reference.pairs.paths[row], embedding.reference.pairs.captions[row], cosine)
                for row, cosine in embedding.nearest
            ),
            nearest_of=len(embedding.reference.pairs),
            recovered=_last_headline(embedding.decoder),
            recovered_of=min(MEASURED, next(iter(embedding.decoder.row.facts.get("heldout_pairs", {}).values()), 0)),
            measured=measured[index][0],
            measured_of=measured[index][1],
            reverse=embedding.reverse,
        )
        for index, embedding in enumerate(decoded)
    ]
    title = request.text or Path(request.image).name
    held = _held(request.direction, decoded) if request.direction else ""
    return DecodedChart(title, original, f"{how(request)}{held}", request.noises, tuple(runs))


def _held(direction: int, decoded: Sequence[DecodedEmbedding]) -> str:
    """Say how much of the training images' variance a principal direction holds in each run."""
    shares = {
        embedding.decoder.of_name: moves.direction_share(embedding.reference.image, direction) for embedding in decoded
    }
    read_off = " and ".join(f"{100 * share:.1f} % ({name})" for name, share in shares.items())
    return f" It holds {read_off} of the training images' variance."


def _last_headline(decoder: OpenDecoder) -> float:
    """Return the decoder's last headline number, if it was measured at the step that is open."""
    row = decoder.row
    # A run that was stopped between two evaluations has been measured at an earlier step.
    measured = row.status == "finished" and row.step == decoder.opened.step
    return float("nan") if row.last is None or not measured else row.last


def how(request: Decode) -> str:
    """Return in words how a request is decoded."""
    source = "sentence" if request.text else "picture"
    parts = [
        f"The embedding of the {source} was decoded by {request.steps} DDIM steps, guidance {request.guidance:g}, "
        f"noises {request.noises[0]} to {request.noises[-1]}"
    ]
    if request.text:
        parts.append(PRIOR_WORDS["gap" if request.close_gap else request.prior])
    if request.other and request.share:
        parts.append(f"{100 * request.share:.0f} % of the way to {Path(request.other).name}")
    if request.before and request.after and request.strength:
        parts.append(f"{request.strength:g} times from “{request.before}” to “{request.after}”")
    if request.direction:
        moved = "dropped" if request.distance is None else f"moved by {request.distance:g}"
        parts.append(f"principal direction {request.direction} {moved}")
    return f"{'; '.join(parts)}."


def check_comparable(a: OpenDecoder, b: OpenDecoder) -> None:
    """Check that two decoders have equal size, seed, order and steps, so that what differs is the embedding.

    Raises:
        AnswerError: They do not; names what differs.
    """
    schedule, other_schedule = a.schedule, b.schedule
    different = [name for name in schedule | other_schedule if schedule.get(name) != other_schedule.get(name)]
    if different:
        first = different[0]
        raise AnswerError(
            "bad_question",
            f"{a.row.short_name} and {b.row.short_name} do not compare: {first} is {schedule.get(first)} and "
            f"{other_schedule.get(first)}"
            f"{f', and {len(different) - 1} more differ' if len(different) > 1 else ''}.",
            "Decode one alone, or train both with equal size, seed, pairs, order and steps.",
        )


def embedding_of(
    decoder: OpenDecoder, request: Decode, reference: Reference
) -> tuple[Float[np.ndarray, " d"], UInt8[np.ndarray, "s s 3"] | None]:
    """Return the unit row that is decoded, and the picture at the size of the decoder; None for a text.

    Raises:
        AnswerError: A picture cannot be read.
    """
    seen = None
    if request.image:
        row, seen = _of_file(decoder, request.image)
    else:
        text = decoder.opened.embed_texts([request.text])[0]
        row = foreseen(decoder, text[None], "gap" if request.close_gap else request.prior, reference)[0]
    if request.other and request.share:
        row = moves.slerp(row, _of_file(decoder, request.other)[0], request.share)
    if request.before and request.after and request.strength:
        before, after = decoder.opened.embed_texts([request.before, request.after])
        row = moves.text_difference(row, before, after, request.strength)
    if request.direction:
        directions = moves.principal_directions(reference.image, request.direction)
        direction = directions[min(request.direction, len(directions)) - 1]
        if request.distance is None:
            row = moves.without_direction(row, reference.image.mean(axis=0), direction)
        else:
            row = moves.along_direction(row, direction, request.distance)
    return row.astype(np.float32), seen


@torch.inference_mode()
def foreseen(
    decoder: OpenDecoder, texts: Float[np.ndarray, "n d"], prior: str, reference: Reference
) -> Float[np.ndarray, "n d"]:
    """Return the image embeddings that a prior, or a baseline in its place, foresees for text embeddings."""
    if prior == "text":
        return texts
    if prior == "gap":
        return np.stack([moves.closed_gap(text, reference.text, reference.image) for text in texts])
    if prior == "ridge":
        return moves.foreseen_by_ridge(texts, reference.ridge)
    method = decoder.method
    rows = torch.from_numpy(np.array(texts, np.float32)).to(method.alpha_bar.device)
    if prior == "mlp":
        return F.normalize(method.prior(scaled(rows)), dim=1).cpu().numpy()
    now = _noise([0] * len(rows), tuple(rows.shape[1:])).to(rows.device)
    levels = noise_schedule.sampling_levels(noise_schedule.STEPS, _PRIOR_STEPS)
    for t, s in itertools.pairwise(levels):
        guess = method.diffusion_prior(
            now, torch.full((len(rows),), t / noise_schedule.STEPS, device=rows.device), rows
        )
        at, earlier = (method.alpha_bar[level].expand(len(rows)) for level in (t, s))
        now = noise_schedule.ddim_step(now, guess, at, earlier)
    return F.normalize(now, dim=1).cpu().numpy()


class StripRecorder:
    """Keeps the first noise at some steps of the way to its picture."""

    def __init__(self, steps: int) -> None:
        self._kept = {round(index) for index in np.linspace(0, steps - 1, min(STRIP, steps))}
        self._levels: list[int] = []
        self._pictures: list[list[np.ndarray]] = [[], []]

    def take(
        self, step: int, level: int, noisy: Float[torch.Tensor, "k 3 s s"], foreseen: Float[torch.Tensor, "k 3 s s"]
    ) -> None:
        """Keep `x_t` and the `x_0` foreseen in it, if the step is one of those."""
        if step in self._kept:
            self._levels.append(level)
            for part, pictures in zip(self._pictures, (noisy, foreseen), strict=True):
                part.append(pictures[:1].float().cpu().numpy())

    @property
    def strip(self) -> ReverseStrip:
        """What was kept."""
        noisy, foreseen = (as_pixels(np.concatenate(part)) for part in self._pictures)
        return ReverseStrip(tuple(self._levels), noisy, foreseen)


@torch.inference_mode()
def sample(
    method: DecoderPictures,
    rows: Float[np.ndarray, "k d"],
    *,
    noises: Sequence[int],
    steps: int,
    guidance: float,
    progress: Progress,
    strip: StripRecorder | None = None,
) -> Float[np.ndarray, "k 3 s s"]:
    """Return a picture with values from -1 to 1 for each row, from the noise with the seed at its place.

    Args:
        rows: Unit rows.
        noises: Seeds; equal ones are equal noise for any decoder.
        steps: DDIM steps.
        guidance: Of Ho and Salimans, 2022, https://arxiv.org/abs/2207.12598: 1 is none.
        strip: Is given every step.
    """
    where = method.alpha_bar.device
    conditions = torch.from_numpy(np.array(rows, np.float32)).to(where)
    now = _noise(noises, (3, method.size, method.size)).to(where)
    levels = noise_schedule.sampling_levels(noise_schedule.STEPS, steps)
    for index, (t, s) in enumerate(itertools.pairwise(levels)):
        progress(index / steps, f"step {index + 1} of {steps}")
        velocity = _guided(method, now, t / noise_schedule.STEPS, conditions, guidance)
        at, earlier = (method.alpha_bar[level].expand(len(now)) for level in (t, s))
        picture = noise_schedule.picture_from_velocity(now, velocity, at).clamp(-1, 1)
        if strip is not None:
            strip.take(index, t, now, picture)
        now = noise_schedule.ddim_step(now, picture, at, earlier)
    return now.float().cpu().numpy()


@torch.inference_mode()
def mean_pictures(method: DecoderPictures, rows: Float[np.ndarray, "n d"]) -> UInt8[np.ndarray, "n s s 3"]:
    """Return the mean picture of each unit row."""
    conditions = torch.from_numpy(np.array(rows, np.float32)).to(method.alpha_bar.device)
    return as_pixels(method.mean_picture(conditions).float().cpu().numpy())


def as_pixels(pictures: Float[np.ndarray, "n 3 s s"]) -> UInt8[np.ndarray, "n s s 3"]:
    """Return pictures with values from -1 to 1 as bytes, channels last."""
    return np.rint((np.clip(pictures, -1, 1) + 1) * 127.5).astype(np.uint8).transpose(0, 2, 3, 1)


def _guided(
    method: DecoderPictures, noisy: torch.Tensor, level: float, conditions: torch.Tensor, guidance: float
) -> torch.Tensor:
    n, where = len(noisy), noisy.device
    if guidance == 1:
        return method.averaged(
            noisy, torch.full((n,), level, device=where), conditions, torch.zeros(n, dtype=torch.bool, device=where)
        )
    dropped = torch.arange(2 * n, device=where) >= n
    both = method.averaged(
        torch.cat((noisy, noisy)),
        torch.full((2 * n,), level, device=where),
        torch.cat((conditions, conditions)),
        dropped,
    )
    with_it, without = both.chunk(2)
    return without + guidance * (with_it - without)


def _noise(seeds: Sequence[int], shape: tuple[int, ...]) -> torch.Tensor:
    return torch.stack([torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds])


def _check(request: Decode) -> None:
    if not 1 <= len(request.runs) <= MOST_DECODERS:
        reason = f"{len(request.runs)} decoders were named; 1 to {MOST_DECODERS} decode at a time."
        raise AnswerError("bad_question", reason, "Name fewer.")
    if bool(request.image) == bool(request.text.strip()):
        raise AnswerError("bad_question", "Either a picture or a sentence is decoded.", "Give one of them.")
    if request.prior not in PRIORS:
        raise AnswerError("bad_question", f"There is no prior {request.prior!r}.", f"Choose {', '.join(PRIORS)}.")
    if not 1 <= request.steps <= noise_schedule.STEPS - 1 or not 0 <= request.guidance <= 10:
        raise AnswerError("bad_question", "Steps or guidance are out of range.", "Choose 1-999 steps, guidance 0-10.")
    if not 1 <= len(request.noises) <= 64 or request.direction < 0:
        raise AnswerError("bad_question", "There are 1 to 64 noises, and directions count from 1.", "Choose others.")


def _opened(run_row: RunRow, run_config: config.Run, opened: OpenModel) -> OpenDecoder:
    loaded = checkpoint.load(run_row.folder / "checkpoints" / f"step_{opened.step:06d}", training=False)
    objective, width = run_config.objective, read_architecture(run_config.model, run_row.folder).embed_dim
    assert isinstance(objective, config.EmbeddingDecoder)
    start = loaded.weights.get("method.mean_picture.start.weight")
    if start is None or start.ndim < 2 or start.shape[1] != width:  # a stranger's may be of any width
        raise AnswerError(
            "no_checkpoint",
            f"The checkpoint of {run_row.name!r} decodes no embeddings of {width} numbers, as its towers make them.",
            "Train the decoder again.",
        )
    method = parts_without_material(objective, width)
    try:
        checkpoint.load_weights(loaded, {"method": method})
    except checkpoint.CheckpointError as error:
        raise AnswerError("no_checkpoint", str(error)) from error
    source = run_row.facts.get("decodes")
    facts = source if isinstance(source, dict) else {}
    name, step = str(facts.get("name", objective.of)), facts.get("step", objective.of_step)
    step = step if isinstance(step, int) else objective.of_step
    layout = device.memory_format(opened.device)
    method = method.eval().to(opened.device, memory_format=layout)  # type: ignore[call-overload]
    return OpenDecoder(run_row, run_config, opened, method, name, step)


def _reference(workspace: Workspace, decoder: OpenDecoder, progress: Progress) -> Reference:
    splits = data.load(
        decoder.run.data,
        image_size=decoder.opened.image_size,
        workspace_folder=workspace.folder,
        progress=progress,
        loading=decoder.run.loading,
        preprocessing=decoder.opened.preprocessing,
    )
    rows = at_most(len(splits.train), REFERENCE)
    pairs = splits.train.part(rows, split="train")
    opened = decoder.opened
    tokens = opened.tokenizer.encode(pairs.captions, opened.context_length)

    def alive() -> None:
        progress(1.0, f"embedding {len(rows):,} training pairs")

    image = embed_images(opened.model, np.asarray(pairs.images), opened.device, alive=alive)
    text = embed_tokens(opened.model, tokens, opened.device, alive=alive)
    return Reference(pairs, splits.training_pairs, image, text)


def _of_file(decoder: OpenDecoder, path: str) -> tuple[Float[np.ndarray, " d"], UInt8[np.ndarray, "s s 3"]]:
    """Return the embedding of a picture file, and the picture at the size of the decoder.

    Raises:
        AnswerError: It cannot be read.
    """
    from trainer.images import read_pictures

    opened = decoder.opened
    (pixels,), (read,) = read_pictures([path], opened.image_size, opened.file_preprocessing)
    if read.reason:
        raise AnswerError("unreadable", f"{path}: {read.reason}")
    small = pictures_of(normalized(torch.from_numpy(np.array(pixels[None]))), decoder.method.size)
    return opened.embed_images(np.array(pixels[None]))[0], as_pixels(small.numpy())[0]
