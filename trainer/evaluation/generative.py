"""Generative models of a run's pictures, next to its contrastive tower: bits per dimension, probes, Bayes' rule."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from trainer import data
from trainer.analysis.intervals import wilson
from trainer.analysis.linear_probe import VALIDATION, linear_probe
from trainer.analysis.progress import Progress, between
from trainer.analysis.sampling import at_most
from trainer.data import DataSplits, Pairs
from trainer.data.augment import normalized
from trainer.data.content import distinct_pictures
from trainer.data.streamed_images import StreamedImages
from trainer.errors import UserError
from trainer.inference.batches import embed_features, embed_images
from trainer.inference.model_cache import CachedModel, ModelCache
from trainer.losses import autoregressive, denoising, noise_schedule, variational_bound
from trainer.methods.decoder import pictures_of
from trainer.models.decoder import Denoiser, parameters_of
from trainer.models.gated_pixel_cnn import GatedPixelCnn
from trainer.models.pixel_cnn import LEVELS, PixelCnn
from trainer.store.generative_results import GenerativeComparison, ModelRow, ReadClasses

NOISE_LEVELS: Final = (20, 50, 100, 200, 300)
"""Of 1,000: those at which features of the diffusion model are tried; the validation rows choose."""
_CNN_STEP: Final = 6
_AVERAGE: Final = 0.999
_AT_ONCE: Final = 32
MOST_DRAWN: Final = 8
"""Classes of which pictures are drawn: the first by name."""

Pictures = UInt8[np.ndarray, "n 3 s s"]
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class GenerativeRequest:
    """How much is trained and measured."""

    updates: int = 2_000  # Of each generative model.
    batch: int = 32  # Pictures of an update.
    size: int = 32  # Side of the pictures in pixels, a multiple of 8.
    # Channels of the diffusion model's finest layer, a multiple of 8; the PixelCNN gets as many parameters.
    width: int = 16
    draws: int = 32  # Noise levels of the diffusion model's bound for each picture.
    most: int = 256  # Held-out pictures whose bits are measured.
    most_training: int = 10_000  # Training pictures that probes are fitted on.
    samples: int = 2  # Pictures that are drawn given each class, of `MOST_DRAWN` classes.
    split: str = ""  # Held-out split; empty for the first.
    seed: int = 0  # Of weights, batches and noise.


@dataclass(frozen=True)
class _Labeled:
    """Rows with a class of both splits, and the classes."""

    names: tuple[str, ...]
    train: Int[np.ndarray, " n"]
    targets: Int[np.ndarray, " n"]
    tried: Int[np.ndarray, " m"]
    label: Int[np.ndarray, " m"]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.names)


def compare_generative(
    models: ModelCache, runs: Sequence[tuple[int | str, int | None]], request: GenerativeRequest, progress: Progress
) -> GenerativeComparison:
    """Train a PixelCNN, a gated one given the class, and a diffusion model on the first run's pictures; compare all.

    The generative models see pictures alone, neither captions nor classes; the gated one also the class, by which it
    is a classifier: the class whose pictures it finds likeliest, `argmax p(picture | class) p(class)`.

    Raises:
        AnswerError: A run has no model to open.
        UserError: Two runs have different data, or the sizes do not fit.
        DataError: The data cannot be read.
    """
    _check(models, runs, request)
    opened = [models.get(run, step) for run, step in runs]
    first = models.workspace.runs.config_of(models.workspace.runs.get(runs[0][0]).id)
    splits = data.load(
        first.data,
        image_size=opened[0].opened.image_size,
        workspace_folder=models.workspace.folder,
        progress=between(progress, 0.0, 0.05),
        loading=first.loading,
        preprocessing=opened[0].opened.preprocessing,
    )
    # A picture with five captions is one picture: to learn, to choose features by, and in every n.
    train, held = (distinct_pictures(pairs) for pairs in (splits.train, _held(splits, request.split)))
    rows = _labeled(train, held, request)
    pictures, held_pictures = (bytes_of(pairs.images, request.size) for pairs in (train, held))
    if len(pictures) < request.batch:
        raise UserError(f"{len(pictures):,} training pictures are fewer than a batch of {request.batch}.")
    measured = held_pictures[at_most(np.arange(len(held_pictures)), request.most)]
    denoiser = trained_denoiser(pictures, request, between(progress, 0.1, 0.35))
    cnn = trained_cnn(pictures, request, parameters_of(denoiser), between(progress, 0.35, 0.6))
    progress(0.6, "Bits of the PixelCNN")
    cnn_bits = bits_of_cnn(cnn, measured)
    diffusion_bits = bits_of_diffusion(denoiser, measured, request, between(progress, 0.62, 0.65))
    cnn_read = _best(_cnn_features(cnn, pictures, held_pictures, rows), rows)
    diffusion_read = _best(_diffusion_features(denoiser, pictures, held_pictures, rows, request), rows)
    table = [
        _row("PixelCNN", cnn, cnn_bits, False, cnn_read),
        _row("diffusion", denoiser, diffusion_bits, True, diffusion_read),
    ]
    bayes = None
    if rows.classes > 1 and len(rows.targets) >= request.batch and len(rows.label):
        bayes = _bayes(pictures, held_pictures, rows, request, parameters_of(denoiser), progress)
        table.append(bayes.row)
    answers = []
    for model in opened:
        progress(0.95, f"Probing {model.name}")
        row, predicted = _run_row(model, train, held, rows)
        table.append(row)
        answers.append((row.model, predicted))
    return GenerativeComparison(
        train.name, held.split, len(measured), len(rows.label), len(rows.targets), rows.classes,
        len(pictures), request.size, request.updates, tuple(table),
        None if bayes is None else _by_class(bayes, answers, rows),
    )  # fmt: skip


def bytes_of(images: UInt8[np.ndarray, "n w h 3"] | StreamedImages, size: int) -> Pictures:
    """Return pictures of 8 bits, resized; what both generative models learn and are measured on."""
    parts = []
    for at in range(0, len(images), 256):
        part = normalized(torch.from_numpy(np.array(images[at : at + 256])))
        parts.append(((pictures_of(part, size) + 1) * (LEVELS - 1) / 2).round().to(torch.uint8).numpy())
    return np.concatenate(parts)


def width_of_cnn(parameters: int, build: Callable[[int], nn.Module] = PixelCnn) -> int:
    """Return the width of the PixelCNN whose number of parameters is nearest to that of the other model."""
    widths = range(_CNN_STEP, 100 * _CNN_STEP, _CNN_STEP)
    index = bisect.bisect_left(widths, parameters, key=lambda width: parameters_of(build(width)))
    near = widths[max(0, index - 1) : index + 1] or widths[-1:]
    return min(near, key=lambda width: abs(parameters_of(build(width)) - parameters))


def as_text(table: GenerativeComparison) -> str:
    """Format the table for a terminal."""
    lines = [
        f"{table.data}, split {table.split}: bits of {table.n_bits:,} pictures of {table.size} pixels; "
        f"linear probe on {table.n_probe:,} pictures, {table.classes} classes, fitted on {table.fitted:,}; "
        f"generative models: {table.updates:,} updates on {table.training:,} pictures without captions or classes",
        f"{'model':<28} {'parameters':>10} {'bits/dim':>16}  {'linear probe':<22} features",
    ]
    for row in table.rows:
        bits = (
            "no likelihood"
            if row.bits is None
            else f"{'<= ' if row.bound else ''}{row.bits:.3f} ± {row.bits_error:.3f}"
        )
        probe = (
            "no classes"
            if row.accuracy is None or row.low is None or row.high is None
            else f"{100 * row.accuracy:.1f} % ({100 * row.low:.1f} % to {100 * row.high:.1f} %)"
        )
        lines.append(f"{row.model:<28} {row.parameters:>10,} {bits:>16}  {probe:<22} {row.width} of {row.features}")
    return "\n".join(lines)


def _check(models: ModelCache, runs: Sequence[tuple[int | str, int | None]], request: GenerativeRequest) -> None:
    limits = {
        "samples": (0, 16),
        "updates": (1, 1_000_000),
        "batch": (2, 4_096),
        "size": (8, 128),
        "width": (8, 256),
        "draws": (1, 1_000),
    }
    for name, (low, high) in limits.items():
        if not low <= getattr(request, name) <= high:
            raise UserError(f"--{name} {getattr(request, name)}: choose {low:,} to {high:,}.")
    if request.size % 8 or request.width % 8:
        raise UserError("--size and --width are multiples of 8.")
    store = models.workspace.runs
    sets = [store.config_of(store.get(run).id).data for run, _ in runs]
    if any(names != sets[0] for names in sets):
        raise UserError("The runs have different data. Choose runs of the same data.")


def _held(splits: DataSplits, split: str) -> Pairs:
    name = split or next(iter(splits.heldout))
    if name not in splits.heldout:
        raise UserError(f"There is no held-out split {name!r}. Choose one of {', '.join(splits.heldout)}.")
    return splits.heldout[name]


def _labeled(train: Pairs, held: Pairs, request: GenerativeRequest) -> _Labeled:
    names = sorted(set(train.labels) - {""})
    of = {name: number for number, name in enumerate(names)}
    learned = np.flatnonzero([label != "" for label in train.labels])
    learned = at_most(learned, request.most_training)
    tried = np.flatnonzero([label in of for label in held.labels])
    targets, label = (
        [of[pairs.labels[row]] for row in rows.tolist()] for pairs, rows in ((train, learned), (held, tried))
    )
    return _Labeled(tuple(names), learned, np.array(targets, int), tried, np.array(label, int))


# -- training -----------------------------------------------------------------------------------------------


def trained_denoiser(pictures: Pictures, request: GenerativeRequest, progress: Progress) -> Denoiser:
    """Return a diffusion model of pictures alone, with the moving average of its weights."""
    torch.manual_seed(request.seed)
    model = Denoiser(1, request.width)
    chance = torch.Generator().manual_seed(request.seed)
    alpha_bar = noise_schedule.cosine_alpha_bar(noise_schedule.STEPS).float()

    def loss(values: UInt8[Tensor, "n 3 s s"], _rows: Int[np.ndarray, " n"]) -> Tensor:
        picture = _unit(values)
        level = torch.randint(1, noise_schedule.STEPS, (len(picture),), generator=chance)
        noise = torch.randn(picture.shape, generator=chance)
        signal_share = alpha_bar[level]
        guess = _velocity(model, noise_schedule.noised(picture, noise, signal_share), level)
        return denoising(guess, noise_schedule.velocity_of(picture, noise, signal_share), signal_share)

    return _fitted(model, loss, pictures, request, progress, "diffusion model")


def trained_cnn(pictures: Pictures, request: GenerativeRequest, parameters: int, progress: Progress) -> PixelCnn:
    """Return a PixelCNN of about `parameters` parameters, with the moving average of its weights."""
    width = width_of_cnn(parameters)
    torch.manual_seed(request.seed)
    model = PixelCnn(width)
    return _fitted(
        model, lambda values, _rows: autoregressive(model(values.long()), values.long()).mean(), pictures, request,
        progress, "PixelCNN",
    )  # fmt: skip


def trained_class_cnn(
    pictures: Pictures,
    classes: Int[np.ndarray, " n"],
    count: int,
    request: GenerativeRequest,
    parameters: int,
    progress: Progress,
) -> GatedPixelCnn:
    """Return a gated PixelCNN of pictures given one of `count` classes, of about `parameters` parameters."""
    build = partial(GatedPixelCnn, condition=count)
    width = width_of_cnn(parameters, build)
    torch.manual_seed(request.seed)
    model = build(width)
    one_hot = torch.eye(count)[torch.from_numpy(classes)]

    def loss(values: UInt8[Tensor, "n 3 s s"], rows: Int[np.ndarray, " n"]) -> Tensor:
        return autoregressive(model(values.long(), one_hot[rows]), values.long()).mean()

    return _fitted(model, loss, pictures, request, progress, "gated PixelCNN")


def _fitted(
    model: Model,
    loss: Callable[[Tensor, Int[np.ndarray, " batch"]], Tensor],
    pictures: Pictures,
    request: GenerativeRequest,
    progress: Progress,
    name: str,
) -> Model:
    """Return the moving average of the weights after all updates."""
    averaged = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    for update, rows in enumerate(_batches(len(pictures), request)):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1.0, (update + 1) / 100) * (1 - update / request.updates)
        value = loss(torch.from_numpy(pictures[rows]), rows)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        momentum = min(_AVERAGE, (1 + update) / (10 + update))
        for slow, fast in zip(averaged, model.parameters(), strict=True):
            slow.lerp_(fast.detach(), 1 - momentum)
        progress((update + 1) / request.updates, f"Training the {name}, update {update + 1:,} of {request.updates:,}")
    for slow, fast in zip(averaged, model.parameters(), strict=True):
        fast.data.copy_(slow)
    return model.eval()


def _batches(n: int, request: GenerativeRequest) -> Iterator[Int[np.ndarray, " batch"]]:
    rng, order = np.random.default_rng(request.seed), np.empty(0, int)
    for _ in range(request.updates):
        if len(order) < request.batch:
            order = rng.permutation(n)
        rows, order = np.sort(order[: request.batch]), order[request.batch :]
        yield rows


# -- measuring ----------------------------------------------------------------------------------------------


@torch.inference_mode()
def bits_of_cnn(cnn: PixelCnn, pictures: Pictures) -> Float[np.ndarray, " n"]:
    """Return each picture's exact bits a number."""
    parts = [torch.from_numpy(part).long() for part in _parts(pictures)]
    return torch.cat([autoregressive(cnn(part), part) for part in parts]).double().numpy()


@torch.inference_mode()
def log_likelihoods(model: GatedPixelCnn, pictures: Pictures, classes: int) -> Float[np.ndarray, "n k"]:
    """Return each picture's log-likelihood in nats, given each class."""
    numbers = math.prod(pictures.shape[1:])
    rows = []
    for part in _parts(pictures):
        values = torch.from_numpy(part).long()
        by_class = [
            autoregressive(model(values, condition.expand(len(values), -1)), values) for condition in torch.eye(classes)
        ]
        rows.append(-math.log(2) * numbers * torch.stack(by_class, dim=1).double())
    return torch.cat(rows).numpy()


def bayes_rule(
    likelihoods: Float[np.ndarray, "n k"], prior: Float[np.ndarray, " k"]
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the likeliest class of each picture, `argmax p(x | y) p(y)`, and `ln p(x)`, the sum over all classes."""
    with np.errstate(divide="ignore"):  # a class that the training split lacks has no chance
        joint = likelihoods + np.log(prior)
    largest = joint.max(axis=1, keepdims=True)
    return joint.argmax(axis=1), (largest[:, 0] + np.log(np.exp(joint - largest).sum(axis=1)))


@dataclass(frozen=True)
class _Bayes:
    """The class-conditional model as a classifier: its row, which held-out rows it was asked of, answers, pictures."""

    row: ModelRow
    chosen: Int[np.ndarray, " n"]
    predicted: Int[np.ndarray, " n"]
    samples: UInt8[np.ndarray, "k s h w 3"]
    learned: UInt8[np.ndarray, "k s h w 3"]


def _by_class(bayes: _Bayes, answers: Sequence[tuple[str, np.ndarray]], rows: _Labeled) -> ReadClasses:
    """Return the answers of all classifiers to the pictures that Bayes' rule was asked of."""
    predicted = [bayes.predicted, *(of_run[bayes.chosen] for _, of_run in answers)]
    models = (bayes.row.model, *(name for name, _ in answers))
    return ReadClasses(rows.names, models, rows.label[bayes.chosen], np.array(predicted), bayes.samples, bayes.learned)


def drawn_by_class(model: GatedPixelCnn, classes: int, request: GenerativeRequest) -> UInt8[np.ndarray, "k s h w 3"]:
    """Return pictures that the model draws given each of the first `MOST_DRAWN` classes."""
    shown = min(classes, MOST_DRAWN)
    condition = torch.eye(classes)[:shown].repeat_interleave(request.samples, dim=0)
    generator = torch.Generator().manual_seed(request.seed)
    drawn = model.sample(condition, request.size, count=len(condition), generator=generator)
    return drawn.to(torch.uint8).permute(0, 2, 3, 1).unflatten(0, (shown, request.samples)).numpy()


def _learned(pictures: Pictures, rows: _Labeled, request: GenerativeRequest) -> UInt8[np.ndarray, "k s h w 3"]:
    """Return training pictures of the classes that are drawn; a class with too few repeats them."""
    shown = min(rows.classes, MOST_DRAWN)
    of_class = [rows.train[rows.targets == number] for number in range(shown)]
    chosen = [np.resize(own, request.samples) if len(own) else np.zeros(request.samples, int) for own in of_class]
    return pictures[np.array(chosen, int).reshape(shown, request.samples)].transpose(0, 1, 3, 4, 2)


def _bayes(
    pictures: Pictures, held: Pictures, rows: _Labeled, request: GenerativeRequest, parameters: int, progress: Progress
) -> _Bayes:
    learned, tried = pictures[rows.train], held[rows.tried]
    chosen = at_most(np.arange(len(tried)), request.most)
    model = trained_class_cnn(learned, rows.targets, rows.classes, request, parameters, between(progress, 0.65, 0.9))
    progress(0.9, "Bayes' rule of the gated PixelCNN")
    likelihoods = log_likelihoods(model, tried[chosen], rows.classes)
    prior = np.bincount(rows.targets, minlength=rows.classes) / len(rows.targets)
    predicted, marginal = bayes_rule(likelihoods, prior)
    bits = -marginal / (math.log(2) * math.prod(pictures.shape[1:]))
    share = float((predicted == rows.label[chosen]).mean())
    read = _Read("argmax p(x | y) p(y)", rows.classes, share, *wilson(share, len(chosen)))
    row = _row("gated PixelCNN, by class", model, bits, False, read)
    progress(0.92, "Pictures of each class")
    drawn = drawn_by_class(model, rows.classes, request)
    return _Bayes(row, chosen, predicted, drawn, _learned(pictures, rows, request))


@torch.inference_mode()
def bits_of_diffusion(
    denoiser: Denoiser, pictures: Pictures, request: GenerativeRequest, progress: Progress
) -> Float[np.ndarray, " n"]:
    """Return a bound from above on each picture's bits a number, estimated with `request.draws` noise levels."""
    alpha_bar = noise_schedule.cosine_alpha_bar(noise_schedule.STEPS)
    chance, bounds = torch.Generator().manual_seed(request.seed), []

    def foresee(noisy: Tensor, signal_share: Tensor) -> Tensor:
        level = noise_schedule.level_of(signal_share, alpha_bar)
        return noise_schedule.picture_from_velocity(noisy, _velocity(denoiser, noisy, level), signal_share).clamp(-1, 1)

    for index, part in enumerate(_parts(pictures)):
        unit = _unit(torch.from_numpy(part))
        bounds.append(variational_bound(unit, foresee, alpha_bar[1:-1], draws=request.draws, generator=chance))
        progress((index + 1) * _AT_ONCE / (len(pictures) + _AT_ONCE), "Bits of the diffusion model")
    return torch.cat(bounds).double().numpy()


def _velocity(model: Denoiser, noisy: Float[Tensor, "n 3 s s"], level: Tensor) -> Tensor:
    n = len(noisy)
    return model(noisy, level / noise_schedule.STEPS, torch.zeros(n, 1), torch.ones(n, dtype=torch.bool))


Features = Iterator[tuple[str, Float[np.ndarray, "n d"], Float[np.ndarray, "m d"]]]


@torch.inference_mode()
def _cnn_features(cnn: PixelCnn, pictures: Pictures, held_pictures: Pictures, rows: _Labeled) -> Features:
    both = []
    for values in (pictures[rows.train], held_pictures[rows.tried]):
        parts = [cnn.features(torch.from_numpy(part).long()) for part in _parts(values)]
        both.append([torch.cat(blocks).numpy() for blocks in zip(*parts, strict=True)])
    if both[0] and both[1]:
        for block, (train, tried) in enumerate(zip(*both, strict=True)):
            yield f"block {block + 1}", train, tried


@torch.inference_mode()
def _diffusion_features(
    denoiser: Denoiser, pictures: Pictures, held_pictures: Pictures, rows: _Labeled, request: GenerativeRequest
) -> Features:
    alpha_bar = noise_schedule.cosine_alpha_bar(noise_schedule.STEPS).float()
    if not len(rows.targets) or not len(rows.label):
        return
    for level in NOISE_LEVELS:
        both = []
        for values in (pictures[rows.train], held_pictures[rows.tried]):
            chance, features = torch.Generator().manual_seed(request.seed), []
            for part in _parts(values):
                unit = _unit(torch.from_numpy(part))
                noise, many = torch.randn(unit.shape, generator=chance), torch.full((len(unit),), level)
                noisy = noise_schedule.noised(unit, noise, alpha_bar[many])
                features.append(denoiser.features(noisy, many / noise_schedule.STEPS))
            both.append(torch.cat(features).numpy())
        yield f"the middle at noise level {level}", both[0], both[1]


@dataclass(frozen=True)
class _Read:
    """What a probe reads off features."""

    features: str
    width: int
    accuracy: float | None
    low: float | None
    high: float | None


def _best(candidates: Features, rows: _Labeled) -> _Read:
    """Return the probe of the features that read most of a fifth of the training rows, fitted on the others."""
    best, chosen = -1.0, None
    order = np.random.default_rng(0).permutation(len(rows.targets))
    validated, fitted = np.split(order, [round(VALIDATION * len(order))])
    for name, train, tried in candidates:
        if rows.classes < 2 or not len(validated):
            break
        fit = linear_probe(train[fitted], rows.targets[fitted], train[validated], rows.classes)
        right = float((fit.predicted == rows.targets[validated]).mean())
        if right > best:
            best, chosen = right, (name, train, tried)
    return _Read("none", 0, None, None, None) if chosen is None else _read(*chosen, rows)[0]


def _read(
    name: str, train: Float[np.ndarray, "n d"], tried: Float[np.ndarray, "m d"], rows: _Labeled
) -> tuple[_Read, Int[np.ndarray, " m"]]:
    if rows.classes < 2 or not len(rows.label):
        return _Read(name, train.shape[1], None, None, None), np.full(len(rows.label), -1)
    fit = linear_probe(train, rows.targets, tried, rows.classes)
    share = float((fit.predicted == rows.label).mean())
    return _Read(name, train.shape[1], share, *wilson(share, len(rows.label))), fit.predicted


def _row(name: str, model: nn.Module, bits: Float[np.ndarray, " n"], bound: bool, read: _Read) -> ModelRow:
    error = float(bits.std(ddof=1) / np.sqrt(len(bits))) if len(bits) > 1 else None
    return ModelRow(
        name, parameters_of(model), float(bits.mean()), error, bound, read.features, read.width, read.accuracy,
        read.low, read.high,
    )  # fmt: skip


def _run_row(model: CachedModel, train: Pairs, held: Pairs, rows: _Labeled) -> tuple[ModelRow, np.ndarray]:
    """Return the row of a run, and the answers of its probe; -1 where there is no class to name."""
    opened = model.opened
    both, where = [], "the tower before its projection"
    for pairs, at in ((train, rows.train), (held, rows.tried)):
        features = embed_features(opened.model, pairs.images[at], opened.device) if len(at) else np.empty((0, 1))
        if features is None:
            where, features = "the embedding", embed_images(opened.model, pairs.images[at], opened.device)
        both.append(features)
    read, predicted = _read(where, both[0], both[1], rows)
    visual = opened.model.visual
    size = parameters_of(visual) if visual is not None else 0
    name = f"{model.name} at step {opened.step:,}"
    row = ModelRow(name, size, None, None, False, read.features, read.width, read.accuracy, read.low, read.high)
    return row, predicted


def _parts(pictures: Pictures) -> Iterator[Pictures]:
    return (pictures[at : at + _AT_ONCE] for at in range(0, len(pictures), _AT_ONCE))


def _unit(values: UInt8[Tensor, "n 3 s s"]) -> Float[Tensor, "n 3 s s"]:
    return values.float() * (2 / (LEVELS - 1)) - 1
