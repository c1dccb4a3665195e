"""Decoding by real decoders of tiny runs: equal noises, moves, priors, refusals, the command."""

import copy
import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from tests.cancelled import cancelled
from trainer import config, data
from trainer.__main__ import main
from trainer.analysis import embedding_moves as moves
from trainer.analysis.unit_rows import normalized
from trainer.charts.decode import MeasuredAttribute, measured_of
from trainer.charts.marks import XYPlot
from trainer.data.augment import random_crops
from trainer.data.order import batches
from trainer.evaluation.decode_measures import (
    MeasureRequest,
    as_text,
    bits_of,
    document,
    measure_decoders,
    recovery,
    true_rows,
)
from trainer.inference.decode import (
    PRIORS,
    STRIP,
    OpenDecoders,
    as_pixels,
    chart_of,
    check_comparable,
    decode,
    embedding_of,
    foreseen,
    how,
    sample,
)
from trainer.inference.model_cache import AnswerError
from trainer.messages import Decode, answer_line, decode_answer
from trainer.methods.batch import Batch
from trainer.methods.decoder import parts_without_material, pictures_of
from trainer.render_mpl import decode as figure
from trainer.server.handlers import RequestHandlers
from trainer.store import Workspace, manifests
from trainer.training.decoder_limits import attribute_decoder
from trainer.training.fit import fit
from trainer.training.optimizer import build, learning_rate
from trainer.untrusted.bounded.arrays import load_npy

pytestmark = pytest.mark.slow

DECODER = config.EmbeddingDecoder(size=16, width=8, prior_width=16)


def silent(share: float, note: str) -> None:
    """Say nothing."""


def by(decoders: list[tuple[int, int | None]], request: Decode) -> Decode:
    """Return the request to these decoders, each at its step."""
    runs, checkpoints = zip(*decoders, strict=True)
    return dataclasses.replace(request, runs=runs, checkpoints=checkpoints)


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
    request = Decode(runs=(3,), image=str(picture), steps=3)
    original, (a, b) = decode(decoders, by([(3, None), (4, None)], request), silent)
    assert original.shape == a.mean.shape == (16, 16, 3)
    assert a.samples.shape == b.samples.shape == (6, 16, 16, 3)
    again = decode(decoders, by([(3, None)], request), silent)[1][0]
    assert np.array_equal(a.samples, again.samples)
    by_hand = a.samples.astype(float) / 255
    assert a.spread == pytest.approx(by_hand.std(axis=0).mean(axis=2), abs=0.01)
    cosines = a.reference.image @ a.embedding
    # Rows whose cosines differ by rounding alone may change places.
    assert cosines[[row for row, _ in a.nearest]] == pytest.approx(np.sort(cosines)[::-1][:3], abs=1e-5)


def test_guidance_of_one_is_no_guidance(decoders):
    decoder = decoders.get(3)
    rows = normalized(np.random.default_rng(0).standard_normal((2, 16)))
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
    plain = Decode(runs=(3,), image=str(picture))
    row, _ = embedding_of(decoder, plain, reference)
    before, after = decoder.opened.embed_texts(["a red ring", "a blue ring"])
    moved, _ = embedding_of(
        decoder, dataclasses.replace(plain, before="a red ring", after="a blue ring", strength=0.5), reference
    )
    assert moved == pytest.approx(normalized(row + 0.5 * (after - before)), abs=1e-6)
    along, _ = embedding_of(decoder, dataclasses.replace(plain, direction=2, distance=-0.5), reference)
    second = moves.principal_directions(reference.image, 2)[1]
    assert along == pytest.approx(normalized(row - 0.5 * second), abs=1e-6)
    dropped, _ = embedding_of(decoder, dataclasses.replace(plain, direction=2), reference)
    direction = moves.principal_directions(reference.image, 2)[1]
    expected = row - ((row - reference.image.mean(axis=0)) @ direction) * direction
    assert dropped == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("runs", "request_", "words"),
    [
        ([(1, None)], Decode(runs=(3,), text="x"), "is not a decoder"),
        ([(99, None)], Decode(runs=(3,), text="x"), "There is no run"),
        ([(3, 77)], Decode(runs=(3,), text="x"), "step_000077"),
        ([(3, None), (5, None)], Decode(runs=(3,), text="x"), "do not compare: seed is 0 and 1"),
        ([(3, None)], Decode(runs=(3,)), "Either a picture or a sentence"),
        ([(3, None)], Decode(runs=(3,), text="x", image="y"), "Either a picture or a sentence"),
        ([(3, None)], Decode(runs=(3,), text="x", prior="magic"), "There is no prior"),
        ([(3, None)], Decode(runs=(3,), text="x", steps=0), "out of range"),
        ([(3, None)], Decode(runs=(3,), image="/nowhere.png"), "/nowhere.png"),
    ],
)
def test_what_cannot_be_decoded_gets_a_sentence(decoders, runs, request_, words):
    with pytest.raises(AnswerError) as refused:
        decode(decoders, by(runs, request_), silent)
    assert words in str(refused.value)


def test_decoders_of_two_runs_with_equal_settings_compare(decoders):
    check_comparable(decoders.get(3), decoders.get(4))


def test_the_model_process_answers_what_the_function_computes(workspace, decoders, picture):
    question = Decode(runs=(3, 4), image=str(picture), steps=2)
    answer = RequestHandlers(workspace).answer(question, silent)
    _, (a, _) = decode(decoders, by([(3, None), (4, None)], Decode(runs=(3,), image=str(picture), steps=2)), silent)
    told = answer.runs[0]
    pictures = load_npy(told.pictures)
    assert np.array_equal(pictures[0], a.mean)
    assert np.array_equal(pictures[1:], a.samples)
    assert load_npy(told.spread) == pytest.approx(a.spread)
    assert (told.of_name, told.of_step, told.nearest_of) == ("clip", 2, 64)
    assert decode_answer(question, json.loads(answer_line(1, answer))["answer"]) == answer


def test_the_way_from_noise_ends_at_the_picture(workspace, decoders, picture, tmp_path):
    """At the first level it is the noise of the seed, one step before the end the foreseen picture is the sample."""
    question = Decode(runs=(3,), image=str(picture), steps=12, noises=(5,), reverse=True)
    _, (way,) = decode(decoders, question, silent)
    _, (plain,) = decode(decoders, dataclasses.replace(question, reverse=False), silent)
    assert plain.reverse is None
    np.testing.assert_array_equal(way.samples, plain.samples)
    strip = way.reverse
    assert len(strip.levels) == STRIP
    assert list(strip.levels) == sorted(strip.levels, reverse=True)
    assert strip.levels[0] == 999
    noise = torch.randn(3, 16, 16, generator=torch.Generator().manual_seed(5)).numpy()
    np.testing.assert_array_equal(strip.noisy[0], as_pixels(noise[None])[0])
    np.testing.assert_array_equal(strip.foreseen[-1], way.samples[0])
    answer = RequestHandlers(workspace).answer(question, silent).runs[0]
    assert answer.levels == strip.levels
    np.testing.assert_array_equal(load_npy(answer.reverse), [strip.noisy, strip.foreseen])
    words = ["decode", "3", "--image", str(picture), "--steps", "3", "--reverse", "--out", str(tmp_path / "way.png")]
    assert main([*words, "--workspace", str(workspace.folder)]) == 0
    assert Image.open(tmp_path / "way.png").size[1] > 1000
    assert how(question).startswith("The embedding of the picture was decoded by 12 DDIM steps, guidance 1,")


def test_a_cancelled_request_ends_between_steps(decoders):
    with cancelled(lambda _share, note: note.startswith("step 2")) as stop:
        decode(decoders, by([(3, None)], Decode(runs=(3,), text="a red ring", steps=3)), stop)


def test_the_command_draws_and_prints(workspace, picture, tmp_path, capsys):
    out = [str(tmp_path / name) for name in ("x.png", "x.csv")]
    words = ["decode", "3", "4", "--text", "a red ring", "--prior", "ridge", "--steps", "2", "--out", *out]
    assert main([*words, "--json", "--workspace", str(workspace.folder)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [run["of"] for run in printed["runs"]] == ["clip", "cloob"]
    assert "ridge regression" in printed["how"]
    assert Image.open(out[0]).size[0] > 500
    lines = Path(out[1]).read_text().splitlines()
    assert len(lines) == 1 + 2 * (3 + 6), "mean, nearest, deviation and the samples of two decoders"
    assert main(["decode", "3", "--image", str(picture), "--before", "a", "--workspace", str(workspace.folder)]) == 2
    assert "needs both" in capsys.readouterr().err


def test_how_says_every_move():
    request = Decode(
        runs=(3,),
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
        assert list(one.cosines) == list(one.ranks) == ["clip at step 2", "cloob at step 2"] == list(measures.resized)
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


def test_cosines_and_bits_are_compared_on_the_same_pictures(measures):
    a, b = measures.decoders
    for name, gap in zip(a.cosines, measures.paired):
        assert name in gap.what
        assert gap.n == 12
        assert gap.difference == pytest.approx(b.cosines[name] - a.cosines[name], abs=1e-6)
        assert gap.low <= gap.difference <= gap.high
    assert measures.paired[-1].difference == pytest.approx(b.bits[0] - a.bits[0], rel=1e-5)
    text = as_text(measures)
    assert "B against A, cosine by the encoder of clip at step 2" in text
    assert not re.search(r"against A.*[ (]-\d", text), "a hyphen beside true minus signs"


def test_a_decoder_of_true_attributes_is_trained_as_the_decoder_was(workspace, decoders):
    """The same updates by hand: AdamW, rate, order and crops of the run, rows of true attributes."""
    decoder = decoders.get(3)
    run = decoder.run
    splits = data.load(run.data, image_size=32, workspace_folder=workspace.folder, progress=silent)
    labels = {"ground": sorted(set(splits.train.metadata["ground"])), "subject_color": ["red"]}
    rows = true_rows(splits.train, labels)
    for row, ground, color in zip(rows, splits.train.metadata["ground"], splits.train.metadata["subject_color"]):
        told = np.array([ground == value for value in labels["ground"]] + [color == "red"], float)
        assert row == pytest.approx(told / np.sqrt(told.sum()))
    notes: list[str] = []
    made = attribute_decoder(decoder, splits.train, labels, lambda share, note: notes.append(note))
    assert len(notes) == decoder.opened.step == 2
    torch.manual_seed(run.seed)
    method = parts_without_material(run.objective, rows.shape[1], seed=run.seed).train()
    updates = build(method, run.optimizer)
    for step, at in enumerate(map(np.sort, batches(64, 32, run.seed, 0))):
        for group in updates.param_groups:
            group["lr"] = learning_rate(step, total_steps=2, choice=run.optimizer)
        told = torch.from_numpy(rows[at])
        seen = random_crops(torch.from_numpy(splits.train.images[at]), at, run.seed, 0, run.optimizer.crop_scale)
        loss = method.compare((told, told, pictures_of(seen, 16).flatten(1)), Batch(None, None, step=step))
        updates.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(method.parameters(), run.optimizer.clip_norm or 1e9)
        updates.step()
        method.follow(None, 0.0)
    for name, value in method.state_dict().items():
        assert torch.allclose(value.float(), made.state_dict()[name].float(), atol=1e-6), name


def test_what_was_measured_is_remembered_and_told_with_the_pictures(workspace, picture, capsys):
    words = [
        "decode",
        "3",
        "--measure",
        "--limits",
        "--most",
        "4",
        "--steps",
        "2",
        "--workspace",
        str(workspace.folder),
    ]
    assert main(words) == 0
    assert "an equal decoder of the true attributes" in capsys.readouterr().out
    told = workspace.runs.get(3).facts["decoded"]
    assert (told["step"], told["n"]) == (2, 4)
    answer = RequestHandlers(workspace).answer(Decode(runs=(3,), image=str(picture), steps=2), silent)
    measured = {each.name: dataclasses.asdict(each) for each in answer.runs[0].measured}
    assert measured["ground"] == {"name": "ground"} | told["attributes"]["ground"]
    _, found = decode(OpenDecoders(workspace), by([(3, None)], Decode(runs=(3,), image=str(picture), steps=2)), silent)
    limits = chart_of(Decode(runs=(3,), image=str(picture)), None, found).limits
    ground = [round(100 * told["attributes"]["ground"][part]) for part in ("samples", "limit", "originals")]
    assert "A judge reads right, % of 4 samples of clip, of true attributes, of the originals: " in limits
    assert "ground {}, {} of {}".format(*ground) in limits


@pytest.mark.parametrize(
    "told",
    [None, 3, {}, {"step": 2}, {"step": 2, "n": 4, "attributes": 3}, {"step": 2, "n": 4, "attributes": {"a": 1}},
     {"step": 2, "n": "x", "attributes": {}}, {"step": 2, "n": 4, "attributes": {"a": {"samples": 2, "originals": 1}}}],
)  # fmt: skip
def test_unsound_facts_of_measures_are_left_out(told):
    assert measured_of({"decoded": told}, 2)[0] == ()


def test_the_share_of_variance_of_a_direction_is_told(decoders, picture):
    request = Decode(runs=(3,), image=str(picture), steps=2, direction=2)
    rows = decoders.reference(decoders.get(3), silent).image.astype(float)
    variances = np.sort(np.linalg.eigvalsh(np.cov(rows.T)))[::-1]
    share = 100 * variances[1] / variances.sum()
    _, found = decode(decoders, by([(3, None)], request), silent)
    assert f"It holds {share:.1f} % (clip) of the training images' variance." in chart_of(request, None, found).how


def test_measures_of_another_step_are_not_told():
    facts = {"decoded": {"step": 2, "n": 4, "attributes": {"a": {"samples": 0.5, "originals": 1}}}}
    assert measured_of(facts, 2) == ((MeasuredAttribute("a", 0.5, 1.0, None),), 4)
    assert measured_of(facts, 3) == ((), 0)


@pytest.mark.nightly
def test_a_film_holds_each_decoded_step_and_fades_between_them(decoders, picture):
    """Decoders of later steps, by hand: each frame that is held is the figure of the newest ones up to its step."""
    request = Decode(runs=(3,), image=str(picture), steps=2)
    chart = chart_of(request, *decode(decoders, by([(3, None), (4, None)], request), silent))
    a, b = (dataclasses.replace(run, of_step=0) for run in chart.runs)
    late = dataclasses.replace(a, of_step=10, mean=255 - a.mean)
    chart = dataclasses.replace(chart, runs=(a, b, late))
    held = figure.at_step(chart, 10).runs
    assert [(run.of_name, run.of_step) for run in held] == [("clip", 10), ("cloob", 0)]
    assert [run.of_step for run in figure.at_step(chart, 4).runs] == [0, 0]
    shown = list(figure.frames(chart))
    assert len(shown) == 2 + figure.BETWEEN
    first, middle, last = (shown[place].pixels.astype(float) for place in (0, 3, -1))
    assert np.abs(middle - (first + 3 / 7 * (last - first))).max() <= 0.5


@pytest.mark.nightly
def test_many_decoders_are_drawn_below_each_other_and_all_are_compared(workspace, decoders, picture, tmp_path, capsys):
    out = tmp_path / "three.png"
    words = ["decode", "3", "4", "3", "--image", str(picture), "--steps", "2", "--workspace", str(workspace.folder)]
    assert main([*words, "--json", "--out", str(out)]) == 0
    assert [run["name"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["d10", "d20", "d10"]
    request = Decode(runs=(3,), image=str(picture), steps=1)
    with pytest.raises(AnswerError, match="do not compare: seed is 0 and 1"):
        decode(decoders, by([(3, None), (4, None), (5, None)], request), silent)
    with pytest.raises(AnswerError, match="17 decoders were named; 1 to 16"):
        decode(decoders, by([(3, None)] * 17, request), silent)


@pytest.mark.nightly
def test_the_command_writes_a_film(workspace, picture, tmp_path, capsys):
    out = tmp_path / "x.gif"
    words = ["decode", "3", "4", "--image", str(picture), "--steps", "2", "--workspace", str(workspace.folder)]
    assert main([*words, "--out", str(out)]) == 0
    with Image.open(out) as film:
        assert film.size[0] > 500
        assert film.info["comment"].startswith(b"Decoded over training: trainer decode 3 4 --image")
    assert main([*words, "--out", str(tmp_path / "x.doc")]) == 2
    assert ".png" in capsys.readouterr().err


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


@pytest.mark.nightly
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
    rows = normalized(np.random.default_rng(0).standard_normal((2, 16)))
    assert np.abs(bits_of(method, pictures, rows)).max() < 1e-6


@pytest.mark.parametrize("width", [None, 0, 50_000])
def test_a_decoder_of_other_embeddings_is_not_built(workspace, width: int | None, tmp_path):
    """A stranger's checkpoint may say any width; one of 50,000 would have made a prior of 400 MB."""
    shutil.copytree(workspace.folder, tmp_path / "copy")
    other = Workspace(tmp_path / "copy")
    folder = max((other.runs.get(3).folder / "checkpoints").glob("step_*"))
    weights, name = load_file(folder / "model.safetensors"), "method.mean_picture.start.weight"
    known = weights.pop(name)
    if width is not None:
        weights[name] = torch.zeros(len(known), width)
    facts = {key: value for key, value in manifests.verified(folder).items() if key != "files"}
    (folder / manifests.NAME).unlink()
    save_file(weights, folder / "model.safetensors")
    manifests.write_manifest(folder, facts)
    with pytest.raises(AnswerError, match="decodes no embeddings of 16 numbers"):
        OpenDecoders(other).get(3)
    other.close()


@pytest.mark.parametrize("told", [[1], "x", {"step": "x"}, {"step": [1], "name": 5}, None])
def test_odd_facts_of_a_decoder_are_passed_over(workspace, told: object, tmp_path):
    shutil.copytree(workspace.folder, tmp_path / "copy")
    other = Workspace(tmp_path / "copy")
    other.runs.add_facts(3, {"decodes": told})
    assert OpenDecoders(other).get(3).of_step == other.runs.config_of(3).objective.of_step
    other.close()
