"""Measures of decoders: what comes back, by encoders, by an independent judge, and in bits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int

from trainer import data
from trainer.analysis import embedding_moves as moves
from trainer.analysis.intervals import wilson
from trainer.analysis.kept_information import kept_bits
from trainer.analysis.kernel_distance import kernel_distance
from trainer.analysis.number_text import signed, signed_ends
from trainer.analysis.progress import Progress, between
from trainer.analysis.sampling import at_most
from trainer.analysis.significance import McNemar, mcnemar, paired_difference
from trainer.analysis.unit_rows import normalized
from trainer.charts.decoder_recovery import Interval, RecoveryRow, recovery_panel
from trainer.charts.marks import Panel
from trainer.data import DataSplits, Pairs
from trainer.data.content import distinct_pictures
from trainer.evaluation.picture_judge import EPOCHS, judge_of, pictures_at, truth_of
from trainer.inference.decode import (
    PRIORS,
    OpenDecoder,
    OpenDecoders,
    Reference,
    as_pixels,
    check_comparable,
    foreseen,
    sample,
)
from trainer.losses import noise_schedule
from trainer.methods.decoder import DecoderPictures
from trainer.models.judge import Judge
from trainer.store import Workspace

_LEVELS: Final = 25
"""Noise levels over which bits are integrated, even in log-SNR."""
_BITS_OF: Final = 64
"""Pictures whose bits are measured: two passes at each level."""
_AT_ONCE: Final = 64
_PROBE_PENALTY: Final = 1e-3


TrainAlike = Callable[[OpenDecoder, Pairs, Mapping[str, Sequence[str]], Progress], DecoderPictures]
"""Trains a decoder of true attributes like a decoder of embeddings."""


@dataclass(frozen=True)
class MeasureRequest:
    """How much is measured."""

    most: int = 256  # Held-out pictures.
    steps: int = 25  # DDIM steps.
    judge_epochs: int = EPOCHS  # Of the judge, on the training pictures.
    split: str = ""  # Held-out split; empty for the first.


@dataclass(frozen=True)
class Share:
    """A share of right answers with Wilson's interval."""

    share: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class DecoderMeasures:
    """The measures of one decoder."""

    run: int  # Of the decoder.
    name: str  # Of the decoder.
    of_name: str  # Of the decoded run.
    of_step: int  # Its step.
    step: int  # Updates that the decoder has made.
    n: int  # Held-out pictures, one sample each.
    cosines: dict[str, float]  # Encoder -> mean cosine of a sample's embedding with its original's.
    ranks: dict[str, float]  # Encoder -> median rank of the original among the n originals, 1 being the nearest.
    recovered: dict[str, Share]  # Attribute -> share that the judge reads right off samples.
    probed: dict[str, Share]  # Attribute -> share that a ridge classifier reads right off embeddings.
    kid: float  # Kernel distance of samples and originals in the judge's features.
    diversity: float  # Root mean square difference of two samples of one embedding, in 0 to 1.
    copies: Share  # Share of samples nearer to a training picture, in pixels, than 95 of 100 originals are.
    bits: tuple[float, int]  # Mean bits kept a picture, and how many pictures.
    bits_map: Float[np.ndarray, "s s"]  # Bits a pixel, mean over the pictures.
    # Prior or baseline -> mean cosine of what it foresees from the caption with the picture's embedding.
    priors: dict[str, float]
    best_prior: str  # The one with the largest.


@dataclass(frozen=True)
class RecoveryDifference:
    """B against A on the same pictures: the difference with its 95 % interval, and the exact test."""

    attribute: str
    difference: float
    low: float
    high: float
    test: McNemar


@dataclass(frozen=True)
class NumberDifference:
    """B against A on the same pictures: the mean difference of a number with its 95 % interval (bootstrap)."""

    what: str
    difference: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Measures:
    """All of it."""

    split: str  # The held-out split.
    judge: dict[str, Share]  # Attribute -> the judge's own accuracy on the originals.
    decoders: tuple[DecoderMeasures, ...]  # One or more.
    compared: tuple[RecoveryDifference, ...]  # B minus A of recovered attributes; empty for one decoder.
    # B minus A of cosines by the encoder of either, and of bits; empty for one decoder.
    paired: tuple[NumberDifference, ...] = ()
    # Encoder -> mean cosine of an original at the size of the decoder with the original: what a perfect sample
    # would reach.
    resized: dict[str, float] = field(default_factory=dict)
    # Attribute -> share read right off samples of an equal decoder that is told the true attributes; empty where
    # it was not asked for.
    limits: dict[str, Share] = field(default_factory=dict)


@dataclass(frozen=True)
class _Drawn:
    """Samples of one decoder, as pixels from -1 to 1: two for each picture."""

    rows: Float[np.ndarray, "n d"]
    first: Float[np.ndarray, "n 3 s s"]
    second: Float[np.ndarray, "n 3 s s"]


@dataclass(frozen=True)
class _ByPicture:
    """What is compared picture by picture: right answers of the judge, cosines by each encoder, bits."""

    right: dict[str, Bool[np.ndarray, " k"]]
    cosines: dict[str, Float[np.ndarray, " n"]]
    bits: Float[np.ndarray, " m"]


def measure_decoders(
    workspace: Workspace,
    runs: Sequence[tuple[int | str, int | None]],
    request: MeasureRequest,
    progress: Progress,
    alike: TrainAlike | None = None,
) -> Measures:
    """Return the measures of one decoder or of two that compare.

    Args:
        runs: Decoders, each with its checkpoint or None for the newest.
        alike: Trains the decoder of true attributes (`trainer.training.decoder_limits`), which takes as long as a
            decoder took; None: the limits are not measured.

    Raises:
        AnswerError: One is not a decoder, or two do not compare.
        DataError: Their data cannot be read.
    """
    decoders = OpenDecoders(workspace, keep=2)
    opened = [decoders.get(run, step) for run, step in runs]
    for other in opened[1:]:
        check_comparable(opened[0], other)
    first = opened[0]
    splits = data.load(
        first.run.data,
        image_size=first.opened.image_size,
        workspace_folder=workspace.folder,
        progress=between(progress, 0.0, 0.1),
        loading=first.run.loading,
        preprocessing=first.opened.preprocessing,
    )
    split = request.split or next(iter(splits.heldout))
    held = splits.heldout[split]
    # A picture with five captions is one picture: the intervals are of as many.
    held = distinct_pictures(held)
    held = held.part(at_most(np.arange(len(held)), request.most), split=split)
    report = between(progress, 0.1, 0.3)
    judge, labels = judge_of(workspace.folder, splits.train, first.method.size, request.judge_epochs, report)
    originals = pictures_at(held, first.method.size)
    truth = truth_of(held, labels)
    measures, answers = [], []
    for number, decoder in enumerate(opened):
        report = between(progress, 0.3 + 0.7 * number / len(opened), 0.3 + 0.7 * (number + 1) / len(opened))
        reference = decoders.reference(decoder, between(report, 0.0, 0.1))
        drawn = _drawn(decoder, held, request.steps, between(report, 0.1, 0.8))
        report(0.9, "bits kept")
        bits = _bits(decoder, originals, drawn)
        cosines, ranks = _re_embedded(opened, held, torch.from_numpy(drawn.first))
        right = _right(judge, drawn.first, truth)
        answers.append(_ByPicture(right, cosines, bits.sum(axis=(1, 2))))
        measures.append(_measured(decoder, reference, held, originals, drawn, judge, answers[-1], ranks, bits, labels))
    limits = {} if alike is None else _limits(first, splits, held, labels, truth, judge, request.steps, alike, progress)
    return Measures(
        split,
        _shares(_right(judge, originals, truth)),
        tuple(measures),
        _compared(answers) if len(answers) > 1 else (),
        _paired(answers) if len(answers) > 1 else (),
        {name: float(rows.mean()) for name, rows in _re_embedded(opened, held, originals)[0].items()},
        limits,
    )


def true_rows(pairs: Pairs, labels: Mapping[str, Sequence[str]]) -> Float[np.ndarray, "n d"]:
    """Return the attributes of each pair as a unit row: one column a value, 1 before scaling where the pair has it."""
    columns = [np.array(pairs.metadata[name])[:, None] == np.array(values) for name, values in labels.items()]
    return normalized(np.hstack(columns).astype(np.float32))


@torch.inference_mode()
def bits_of(
    method: DecoderPictures, pictures: torch.Tensor, rows: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "n s s"]:
    """Return the bits that an embedding adds about each pixel of its picture, colors added up."""
    log_snr = noise_schedule.log_snr(noise_schedule.cosine_alpha_bar(noise_schedule.STEPS)).numpy()
    inside = np.arange(2, noise_schedule.STEPS - 1)
    targets = np.linspace(log_snr[inside[-1]], log_snr[inside[0]], _LEVELS)
    levels = sorted({int(inside[np.abs(log_snr[inside] - at).argmin()]) for at in targets})
    conditions = torch.from_numpy(np.array(rows, np.float32)).to(pictures.device)
    errors: dict[bool, list[np.ndarray]] = {False: [], True: []}
    n = len(pictures)
    for level in levels:
        noise = torch.randn(pictures.shape, generator=torch.Generator().manual_seed(level)).to(pictures.device)
        signal_share = method.alpha_bar[level].expand(n)
        noisy = noise_schedule.noised(pictures, noise, signal_share)
        share = torch.full((n,), level / noise_schedule.STEPS, device=pictures.device)
        for dropped in (False, True):
            velocity = method.averaged(noisy, share, conditions, torch.full((n,), dropped, device=pictures.device))
            guess = noise_schedule.noise_from_velocity(noisy, velocity.float(), signal_share)
            errors[dropped].append((noise - guess).square().sum(dim=1).cpu().numpy())
    return kept_bits(np.stack(errors[True]), np.stack(errors[False]), log_snr[levels])


def document(measures: Measures) -> dict[str, Any]:
    """Return the measures as plain values, for JSON."""
    plain = dataclasses.asdict(measures)
    for decoder in plain["decoders"]:
        decoder["bits_map"] = decoder["bits_map"].tolist()
    return plain


def as_text(measures: Measures) -> str:
    """Format the measures for a terminal; every number says of how many."""
    n = measures.decoders[0].n
    lines = [
        f"Held out: {measures.split}, n = {n:,}, one sample each; judge: independent, supervised on training pictures"
    ]
    for name, right in measures.judge.items():
        lines.append(f"{name}: the judge reads {_percent(right)} of the originals right")
        if name in measures.limits:
            share = _percent(measures.limits[name])
            lines.append(f"    an equal decoder of the true attributes {share}: the rest is lost by the decoder")
        for decoder in measures.decoders:
            recovered, probed = _percent(decoder.recovered[name]), _percent(decoder.probed[name])
            of = f"{decoder.of_name} at step {decoder.of_step:,}"
            lines.append(f"    decodable from {of} {recovered}, linearly readable {probed}")
        for pair in (each for each in measures.compared if each.attribute == name):
            ends = signed_ends(100 * pair.low, 100 * pair.high)
            lines.append(
                f"    B against A {signed(100 * pair.difference)} points ({ends}), McNemar p = {pair.test.p:.3g}"
            )
    for decoder in measures.decoders:
        lines.append(f"{decoder.name} of {decoder.of_name} at step {decoder.of_step:,}:")
        for encoder, cosine in decoder.cosines.items():
            lines.append(
                f"    re-embedded by the encoder of {encoder}: cosine {cosine:.3f} (originals at the decoder's size "
                f"{measures.resized[encoder]:.3f}), median rank {decoder.ranks[encoder]:.0f} of {n:,}"
            )
        bits, count = decoder.bits
        lines.append(
            f"    bits kept {bits:,.0f} a picture (n = {count}; only differences between equal decoders count)"
        )
        lines.append(
            f"    KID {decoder.kid:.3f} (judge's features), diversity {decoder.diversity:.3f}, "
            f"copies {_percent(decoder.copies)}"
        )
        share = ", ".join(f"{prior} {cosine:.3f}" for prior, cosine in decoder.priors.items())
        wins = " Ridge regression wins: prefer it to the trained priors." if decoder.best_prior == "ridge" else ""
        lines.append(f"    from caption to picture, cosine: {share}.{wins}")
    for gap in measures.paired:
        digits = 0 if gap.what.startswith("bits") else 3
        ends = f"{signed_ends(gap.low, gap.high, digits)}, n = {gap.n:,}"
        lines.append(f"B against A, {gap.what}: {signed(gap.difference, digits)} ({ends})")
    return "\n".join(lines)


def recovery(measures: Measures) -> Panel:
    """Return the chart of recovered attributes: over the steps of a run, or of runs next to each other."""
    rows = [
        RecoveryRow(decoder.of_name, decoder.of_step, {name: _ends(share) for name, share in decoder.recovered.items()})
        for decoder in measures.decoders
    ]
    judge = {name: _ends(share) for name, share in measures.judge.items()}
    return recovery_panel(rows, judge, split=measures.split, n=measures.decoders[0].n)


def facts_of(measures: Measures) -> dict[int, dict[str, Any]]:
    """Return decoder -> what its run remembers of the measures, as `trainer.charts.decode.measured_of` reads it."""
    facts = {}
    for decoder in measures.decoders:
        attributes = {
            name: {"samples": share.share, "originals": measures.judge[name].share}
            | ({"limit": measures.limits[name].share} if name in measures.limits else {})
            for name, share in decoder.recovered.items()
        }
        facts[decoder.run] = {"step": decoder.step, "split": measures.split, "n": decoder.n, "attributes": attributes}
    return facts


def _ends(share: Share) -> Interval:
    return share.share, share.low, share.high


def _measured(
    decoder: OpenDecoder,
    reference: Reference,
    held: Pairs,
    originals: torch.Tensor,
    drawn: _Drawn,
    judge: Judge,
    seen: _ByPicture,
    ranks: dict[str, float],
    bits: Float[np.ndarray, "m s s"],
    labels: dict[str, list[str]],
) -> DecoderMeasures:
    samples = torch.from_numpy(drawn.first)
    with torch.inference_mode():
        features = [judge.features(rows).numpy() for rows in (samples, originals)]
    texts = decoder.opened.embed_texts(held.captions)
    priors = {
        prior: float((foreseen(decoder, texts, prior, reference) * drawn.rows).sum(axis=1).mean()) for prior in PRIORS
    }
    return DecoderMeasures(
        run=decoder.row.id,
        name=decoder.row.name,
        of_name=decoder.of_name,
        of_step=decoder.of_step,
        step=decoder.opened.step,
        n=len(held),
        cosines={name: float(rows.mean()) for name, rows in seen.cosines.items()},
        ranks=ranks,
        recovered=_shares(seen.right),
        probed=_probed(reference, drawn.rows, held, labels),
        kid=kernel_distance(*features),
        diversity=float(np.sqrt(np.square(drawn.first - drawn.second).mean()) / 2),
        copies=_copies(reference, samples, originals),
        bits=(float(bits.sum(axis=(1, 2)).mean()), len(bits)),
        bits_map=bits.mean(axis=0),
        priors=priors,
        best_prior=max(priors, key=lambda prior: priors[prior]),
    )


def _drawn(decoder: OpenDecoder, held: Pairs, steps: int, progress: Progress) -> _Drawn:
    """Return two samples of each picture, whose noise depends on its place alone."""
    rows = np.concatenate(
        [decoder.opened.embed_images(np.array(held.images[at : at + _AT_ONCE])) for at in range(0, len(held), _AT_ONCE)]
    )
    first, second = (
        _samples(decoder.method, rows, which, steps, between(progress, which / 2, (which + 1) / 2)) for which in (0, 1)
    )
    return _Drawn(rows, first, second)


def _samples(
    method: DecoderPictures, rows: Float[np.ndarray, "n d"], which: int, steps: int, progress: Progress
) -> Float[np.ndarray, "n 3 s s"]:
    drawn = []
    for at in range(0, len(rows), _AT_ONCE):
        part = rows[at : at + _AT_ONCE]
        seeds = [1_000_003 * (which + 1) + at + k for k in range(len(part))]
        report = between(progress, at / len(rows), (at + len(part)) / len(rows))
        drawn.append(sample(method, part, noises=seeds, steps=steps, guidance=1.0, progress=report))
    return np.concatenate(drawn)


def _bits(decoder: OpenDecoder, originals: torch.Tensor, drawn: _Drawn) -> Float[np.ndarray, "m s s"]:
    few = slice(0, min(_BITS_OF, len(originals)))
    return bits_of(decoder.method, originals[few].to(decoder.opened.device), drawn.rows[few])


def _encoder(decoder: OpenDecoder) -> str:
    return f"{decoder.of_name} at step {decoder.of_step:,}"


def _re_embedded(
    encoders: Sequence[OpenDecoder], held: Pairs, samples: torch.Tensor
) -> tuple[dict[str, Float[np.ndarray, " n"]], dict[str, float]]:
    """Return encoder -> cosine of each sample with its original, and the median rank of the right original."""
    cosines, ranks = {}, {}
    for by in encoders:
        size = by.opened.image_size
        pixels = F.interpolate(samples, size=(size, size), mode="bilinear", antialias=True)
        embedded = by.opened.embed_images(as_pixels(pixels.numpy()))
        all_ = embedded @ by.opened.embed_images(np.array(held.images[: len(held)])).T
        matched = np.diag(all_)
        cosines[_encoder(by)] = matched
        ranks[_encoder(by)] = float(np.median(1 + (all_ > matched[:, None]).sum(axis=1)))
    return cosines, ranks


@torch.inference_mode()
def _right(
    judge: Judge, pictures: torch.Tensor | np.ndarray, truth: dict[str, Int[np.ndarray, " n"]]
) -> dict[str, Bool[np.ndarray, " k"]]:
    """Return attribute -> whether the judge reads it right, for pictures that have it."""
    said = judge(torch.as_tensor(pictures).cpu())
    return {name: (logits.argmax(dim=1).numpy() == truth[name])[truth[name] >= 0] for name, logits in said.items()}


def _probed(
    reference: Reference, rows: Float[np.ndarray, "n d"], held: Pairs, labels: dict[str, list[str]]
) -> dict[str, Share]:
    """Return what a ridge classifier, learned from the reference pairs, reads off embeddings."""
    shares, truth, wanted_of = {}, truth_of(reference.pairs, labels), truth_of(held, labels)
    for name, values in labels.items():
        learned_truth, held_truth = truth[name], wanted_of[name]
        one_hot = np.eye(len(values))[learned_truth[learned_truth >= 0]]
        weights = moves.ridge(reference.image[learned_truth >= 0], one_hot, _PROBE_PENALTY)
        said = (np.hstack([rows, np.ones((len(rows), 1))]) @ weights).argmax(axis=1)
        shares[name] = _share((said == held_truth)[held_truth >= 0])
    return shares


def _copies(reference: Reference, samples: torch.Tensor, originals: torch.Tensor) -> Share:
    """Return how many samples are nearer to a training picture than 95 of 100 originals are."""
    training_pictures = pictures_at(reference.pairs, samples.shape[-1]).flatten(1)
    near = [torch.cdist(rows.flatten(1), training_pictures).min(dim=1).values.numpy() for rows in (samples, originals)]
    return _share(near[0] < np.quantile(near[1], 0.05))


def _compared(answers: Sequence[_ByPicture]) -> tuple[RecoveryDifference, ...]:
    a, b = (answer.right for answer in answers[:2])
    differences = []
    for name in a:
        paired = paired_difference(a[name], b[name])
        differences.append(
            RecoveryDifference(name, paired.difference, paired.low, paired.high, mcnemar(a[name], b[name]))
        )
    return tuple(differences)


def _paired(answers: Sequence[_ByPicture]) -> tuple[NumberDifference, ...]:
    a, b = answers[:2]
    numbers = {f"cosine by the encoder of {name}": (a.cosines[name], b.cosines[name]) for name in a.cosines}
    numbers["bits kept a picture"] = (a.bits, b.bits)
    return tuple(NumberDifference(what, **vars(paired_difference(*both))) for what, both in numbers.items())


def _limits(
    decoder: OpenDecoder,
    splits: DataSplits,
    held: Pairs,
    labels: dict[str, list[str]],
    truth: dict[str, Int[np.ndarray, " n"]],
    judge: Judge,
    steps: int,
    trained: TrainAlike,
    progress: Progress,
) -> dict[str, Share]:
    """Return what the judge reads right off samples of an equal decoder of the true attributes."""
    if not labels:
        return {}
    trained_judge = trained(decoder, splits.train, labels, progress)
    samples = _samples(trained_judge, true_rows(held, labels), 0, steps, progress)
    return _shares(_right(judge, samples, truth))


def _shares(right: dict[str, Bool[np.ndarray, " k"]]) -> dict[str, Share]:
    return {name: _share(answers) for name, answers in right.items()}


def _share(right: Bool[np.ndarray, " n"]) -> Share:
    share = float(np.mean(right)) if len(right) else float("nan")
    return Share(share, *wilson(share, len(right)), len(right))


def _percent(share: Share) -> str:
    return f"{100 * share.share:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f}, n = {share.n:,})"
