"""Decoding by real decoders of tiny runs: equal noises, moves, priors, refusals, the command."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from trainer import config
from trainer.__main__ import main
from trainer.analysis import embedding_moves as moves
from trainer.charts.marks import XYPlot
from trainer.evaluation.decode_measures import MeasureRequest, as_text, bits_of, document, measure_decoders, recovery
from trainer.inference.decode import (
    PRIORS,
    DecodeRequest,
    OpenDecoders,
    check_comparable,
    decode,
    embedding_of,
    foreseen,
    how,
    sample,
)
from trainer.inference.model_cache import AnswerError
from trainer.messages import Decode
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace
from trainer.training.fit import fit
from trainer.untrusted.bounded.arrays import load_npy

pytestmark = pytest.mark.slow

DECODER = config.EmbeddingDecoder(size=16, width=8, prior_width=16)


def silent(share: float, note: str) -> None:
    """Say nothing."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Workspace:
    """Return a CLIP and a CLOOB run (1, 2), their decoders (3, 4), and one of the first with another seed (5)."""
    made = Workspace(tmp_path_factory.mktemp("decode"))
    small = config.Run(
        data=config.Scenes(train_pairs=64, heldout_pairs=16),
        model=config.TinyTowers(
            image_size=32, image_width=8, text_width=32, text_heads=2, text_layers=1, context_length=12, embed_dim=16
        ),
        optimizer=config.Optimizer(batch_size=32, epochs=1, warmup_steps=1),
        watching=config.Watching(evaluate_every=8, snapshots=2, checkpoint_every=8),
        device="cpu",
    )
    for name, objective in (("clip", config.Clip()), ("cloob", config.Cloob())):
        fit(made, made.runs.create(dataclasses.replace(small, name=name, objective=objective)))
    for of, seed in ((1, 0), (2, 0), (1, 1)):
        objective = dataclasses.replace(DECODER, of=str(of))
        fit(made, made.runs.create(dataclasses.replace(small, name=f"d{of}{seed}", objective=objective, seed=seed)))
    return made


@pytest.fixture(scope="module")
def decoders(workspace) -> OpenDecoders:
    return OpenDecoders(workspace, keep=3)


@pytest.fixture(scope="module")
def picture(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("pictures") / "a.png"
    pixels = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file)
    return file


def test_both_decoders_begin_with_the_same_noise_and_give_their_own_pictures(decoders, picture):
    request = DecodeRequest(image=str(picture), steps=3)
    original, (a, b) = decode(decoders, [(3, None), (4, None)], request, silent)
    assert original.shape == a.mean.shape == (16, 16, 3)
    assert a.samples.shape == b.samples.shape == (6, 16, 16, 3)
    again = decode(decoders, [(3, None)], request, silent)[1][0]
    assert np.array_equal(a.samples, again.samples)
    by_hand = a.samples.astype(float) / 255
    assert a.spread == pytest.approx(by_hand.std(axis=0).mean(axis=2), abs=0.01)
    cosines = a.reference.image @ a.embedding
    assert [row for row, _ in a.nearest] == np.argsort(-cosines)[:3].tolist()


def test_guidance_of_one_is_no_guidance(decoders):
    decoder = decoders.get(3)
    rows = moves.unit(np.random.default_rng(0).standard_normal((2, 16)))
    plain, guided, strong = (
        sample(decoder.method, rows, noises=(0, 1), steps=3, guidance=g, progress=silent) for g in (1.0, 1.0000001, 4.0)
    )
    assert plain == pytest.approx(guided, abs=1e-4)
    assert plain.shape == strong.shape


@pytest.mark.parametrize("prior", PRIORS)
def test_every_prior_gives_unit_rows(decoders, prior):
    decoder = decoders.get(3)
    reference = decoders.reference(decoder, silent)
    texts = decoder.opened.embed_texts(["a red ring", "a blue star"])
    found = foreseen(decoder, texts, prior, reference)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)
    if prior == "text":
        assert np.array_equal(found, texts)
    if prior == "gap":
        shift = reference.image.mean(axis=0) - reference.text.mean(axis=0)
        assert found[1] == pytest.approx((texts[1] + shift) / np.linalg.norm(texts[1] + shift), abs=1e-6)


def test_moves_are_made_on_the_embedding(decoders, picture):
    decoder = decoders.get(3)
    reference = decoders.reference(decoder, silent)
    plain = DecodeRequest(image=str(picture))
    row, _ = embedding_of(decoder, plain, reference)
    before, after = decoder.opened.embed_texts(["a red ring", "a blue ring"])
    moved, _ = embedding_of(
        decoder, dataclasses.replace(plain, before="a red ring", after="a blue ring", strength=0.5), reference
    )
    assert moved == pytest.approx(moves.unit(row + 0.5 * (after - before)), abs=1e-6)
    dropped, _ = embedding_of(decoder, dataclasses.replace(plain, direction=2), reference)
    direction = moves.principal_directions(reference.image, 2)[1]
    expected = row - ((row - reference.image.mean(axis=0)) @ direction) * direction
    assert dropped == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("runs", "request_", "words"),
    [
        ([(1, None)], DecodeRequest(text="x"), "is not a decoder"),
        ([(99, None)], DecodeRequest(text="x"), "There is no run"),
        ([(3, 77)], DecodeRequest(text="x"), "step_000077"),
        ([(3, None), (5, None)], DecodeRequest(text="x"), "do not compare: seed is 0 and 1"),
        ([(3, None)], DecodeRequest(), "Either a picture or a sentence"),
        ([(3, None)], DecodeRequest(text="x", image="y"), "Either a picture or a sentence"),
        ([(3, None)], DecodeRequest(text="x", prior="magic"), "There is no prior"),
        ([(3, None)], DecodeRequest(text="x", steps=0), "out of range"),
        ([(3, None)], DecodeRequest(image="/nowhere.png"), "/nowhere.png"),
    ],
)
def test_what_cannot_be_decoded_gets_a_sentence(decoders, runs, request_, words):
    with pytest.raises(AnswerError) as refused:
        decode(decoders, runs, request_, silent)
    assert words in str(refused.value)


def test_decoders_of_two_runs_with_equal_settings_compare(decoders):
    check_comparable(decoders.get(3), decoders.get(4))


def test_the_model_process_answers_what_the_function_computes(workspace, decoders, picture):
    question = Decode(runs=(3, 4), image=str(picture), steps=2)
    answer = RequestHandlers(workspace).answer(question, silent)
    _, (a, _) = decode(decoders, [(3, None), (4, None)], DecodeRequest(image=str(picture), steps=2), silent)
    told = answer["runs"][0]
    pictures = load_npy(told["pictures"])
    assert np.array_equal(pictures[0], a.mean)
    assert np.array_equal(pictures[1:], a.samples)
    assert load_npy(told["spread"]) == pytest.approx(a.spread)
    assert (told["of_name"], told["of_step"], told["nearest_of"]) == ("clip", 2, 64)
    json.dumps(answer)


def test_a_cancelled_request_ends_between_steps(decoders):
    class Stopped(Exception):
        pass

    def stop(share: float, note: str) -> None:
        if note.startswith("step 2"):
            raise Stopped

    with pytest.raises(Stopped):
        decode(decoders, [(3, None)], DecodeRequest(text="a red ring", steps=3), stop)


def test_the_command_draws_and_prints(workspace, picture, tmp_path, capsys):
    out = [str(tmp_path / name) for name in ("x.png", "x.csv")]
    words = ["decode", "3", "4", "--text", "a red ring", "--prior", "ridge", "--steps", "2", "--out", *out]
    assert main([*words, "--json", "--workspace", str(workspace.folder)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [run["of"] for run in printed["runs"]] == ["clip", "cloob"]
    assert "ridge regression" in printed["how"]
    assert Image.open(out[0]).size[0] > 500
    lines = Path(out[1]).read_text().splitlines()
    assert len(lines) == 1 + 2 * 16 * 16
    assert main(["decode", "3", "--image", str(picture), "--before", "a", "--workspace", str(workspace.folder)]) == 2
    assert "needs both" in capsys.readouterr().err


def test_how_says_every_move():
    request = DecodeRequest(
        text="x",
        prior="gap",
        guidance=2,
        before="a",
        after="b",
        strength=0.5,
        direction=3,
        other="/p/c.png",
        share=0.25,
    )
    words = how(request)
    for part in ("guidance 2", "modality gap closed", "25 % of the way to c.png", "0.5 times", "direction 3 dropped"):
        assert part in words


@pytest.fixture(scope="module")
def measures(workspace):
    return measure_decoders(workspace, [(3, None), (4, None)], MeasureRequest(most=12, steps=2, judge_epochs=2), silent)


def test_measures_say_n_and_are_shares_and_ranks_of_it(measures):
    assert set(measures.judge) >= {"subject_color", "subject_shape", "ground", "relation", "object_shape"}
    for one in measures.decoders:
        assert one.n == 12
        assert all(1 <= rank <= 12 for rank in one.ranks.values())
        assert len(one.cosines) == 2
        for share in (*one.recovered.values(), *one.probed.values(), one.copies, *measures.judge.values()):
            assert share.n == 12
            assert 0 <= share.low <= share.share <= share.high <= 1
            assert (12 * share.share) == pytest.approx(round(12 * share.share))
        assert one.priors[one.best_prior] == max(one.priors.values())
        assert one.diversity > 0
        assert one.bits[1] == 12
        assert one.bits_map.sum() == pytest.approx(one.bits[0], rel=1e-4)


def test_b_against_a_is_tested_on_the_same_pictures(measures):
    a, b = measures.decoders
    for pair in measures.compared:
        gap = b.recovered[pair.attribute].share - a.recovered[pair.attribute].share
        assert pair.difference == pytest.approx(gap)
        assert (pair.test.only_b - pair.test.only_a) / 12 == pytest.approx(gap)
        assert pair.low <= gap <= pair.high


def test_measures_are_printed_with_the_judge_and_what_wins(measures):
    text = as_text(
        dataclasses.replace(measures, decoders=(dataclasses.replace(measures.decoders[0], best_prior="ridge"),))
    )
    assert "n = 12" in text
    assert "the judge reads" in text
    assert "Ridge regression wins" in text
    assert json.dumps(document(measures))


def test_recovery_is_drawn_for_runs_side_by_side(measures):
    panel = recovery(measures)
    (plot,) = (mark for mark in panel.marks if isinstance(mark, XYPlot))
    assert "n = 12" in plot.note
    for bars, one in zip(plot.bars, measures.decoders, strict=True):
        assert bars.name == f"{one.of_name} at step {one.of_step:,}"
        assert bars.heights == tuple(100 * one.recovered[name].share for name in plot.names)


def test_recovery_is_drawn_over_the_steps_of_a_run(measures):
    """A decoder of a later step of the same run, by hand: lines over the steps, in their order."""
    early, late = (dataclasses.replace(measures.decoders[place], of_name="clip") for place in (0, 1))
    early, late = dataclasses.replace(early, of_step=2), dataclasses.replace(late, of_step=10)
    panel = recovery(dataclasses.replace(measures, decoders=(late, early)))
    (plot,) = (mark for mark in panel.marks if isinstance(mark, XYPlot))
    for curve in plot.curves:
        assert curve.x.tolist() == [2, 10]
        wanted = [early.recovered[curve.name], late.recovered[curve.name]]
        assert curve.y.tolist() == [100 * share.share for share in wanted]
        assert curve.low.tolist() == [100 * share.low for share in wanted]


def test_the_command_draws_recovery(workspace, tmp_path, capsys):
    out = [str(tmp_path / name) for name in ("r.png", "r.csv")]
    call = ["decode", "3", "4", "--measure", "--most", "4", "--steps", "2", "--out", *out]
    assert main([*call, "--workspace", str(workspace.folder)]) == 0
    assert "of the originals right" in capsys.readouterr().out
    assert Image.open(out[0]).size[0] > 300
    assert "subject_color" in Path(out[1]).read_text()


def test_an_embedding_that_is_not_used_keeps_no_bits(decoders):
    """Both passes are then equal at every level: a decoder whose condition has no weight."""
    decoder = decoders.get(5)
    method = copy.deepcopy(decoder.method)
    with torch.no_grad():
        for parameter in method.averaged.condition.parameters():
            parameter.zero_()
        method.averaged.nothing.zero_()
    pictures = torch.rand(2, 3, 16, 16) * 2 - 1
    rows = moves.unit(np.random.default_rng(0).standard_normal((2, 16)))
    assert np.abs(bits_of(method, pictures, rows)).max() < 1e-6
