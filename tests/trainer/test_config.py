import dataclasses
import itertools
import math
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer import config
from trainer.config import grid, names
from trainer.config.objective_help import help_of

FIELDS = [
    (section, cls, field)
    for section, options in {"": (config.Run,), **config.SECTIONS}.items()
    for cls in options
    for field in dataclasses.fields(cls)
    if field.name not in config.SECTIONS
]


def _values(cls: type, field: dataclasses.Field) -> st.SearchStrategy[Any]:
    hint = config.field_type(cls, field.name)
    low, high = field.metadata["low"], field.metadata["high"]
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(low, high if high is not None else 2**31)
    if hint is float:
        return st.floats(low, high, allow_nan=False)
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def _sections(cls: type) -> st.SearchStrategy[Any]:
    plain = {f.name: _values(cls, f) for _, owner, f in FIELDS if owner is cls}
    nested = (
        {name: st.one_of([_sections(option) for option in options]) for name, options in config.SECTIONS.items()}
        if cls is config.Run
        else {}
    )
    return st.builds(cls, **plain, **nested)


@pytest.mark.slow
@given(_sections(config.Run))
def test_every_run_comes_back_from_toml_as_it_was(run):
    assert config.from_toml(config.to_toml(run)) == run


@pytest.mark.slow
@given(_sections(config.Run), _sections(config.Run))
def test_the_difference_names_exactly_what_differs(a, b):
    left, right = config.flatten(a), config.flatten(b)
    named = {key for key, _, _ in config.difference(a, b)}
    assert named == {key for key in left.keys() | right.keys() if left.get(key) != right.get(key)}
    assert config.difference(a, a) == []


@pytest.mark.slow
@given(_sections(config.Run))
def test_problems_and_check_agree(run):
    found = config.problems(run)
    try:
        config.check(run)
    except config.ConfigError:
        assert found
    else:
        assert found == {}


def test_the_defaults_may_start():
    config.check(config.Run())
    assert config.problems(config.Run()) == {}


@pytest.mark.parametrize(("section", "cls", "field"), FIELDS, ids=lambda value: getattr(value, "name", str(value)))
def test_every_field_says_what_it_is_and_its_default_is_allowed(section, cls, field):
    assert field.metadata["label"]
    assert field.metadata["help"]
    low, high = field.metadata["low"], field.metadata["high"]
    if low is not None:
        assert field.default >= low
    if high is not None:
        assert field.default <= high


@pytest.mark.parametrize(
    ("section", "cls", "field"),
    [entry for entry in FIELDS if entry[2].metadata["low"] is not None],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_value_below_its_bound_is_refused_by_name(section, cls, field):
    bad = dataclasses.replace(cls(), **{field.name: type(field.default)(field.metadata["low"] - 1)})
    run = dataclasses.replace(config.Run(), **{section: bad}) if section else bad
    with pytest.raises(config.ConfigError, match=rf"{field.name} .*too small: choose at least"):
        config.check(run)
    assert any(key.endswith(field.name) for key in config.problems(run))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not valid TOML"),
        ("nome = 'x'", "unknown field 'nome'; known are name, seed"),
        ("[objective]\nkind = 'quadruplet'", "unknown objective 'quadruplet'; choose one of clip, cloob"),
        ("[objective]\nkind = 'clip'\nscale_hopfield = 8.0", "unknown field 'scale_hopfield'"),
        ("[optimizer]\nbatch_size = 1", "batch_size 1 is too small: choose at least 2"),
        ("[optimizer]\nbatch_size = 1.5", "a whole number is needed"),
        ("[optimizer]\nbatch_size = true", "a whole number is needed"),
        ("[optimizer]\nlearning_rate = nan", "a finite number is needed"),
        ("device = 'tpu'", "choose one of auto, cpu, cuda, mps"),
        ("optimizer = 3", r"\[optimizer\] must be a table"),
        ("seed = -1", "seed -1 is too small"),
        ("[objective]\nkind = 'infoloob'\ninv_tau = -1.0", "inv_tau -1.0 is too small"),
        ("[objective]\nkind = 'triplet'\nsampler = 'easy'", "sampler 'easy': choose one of distance-weighted"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text, said):
    with pytest.raises(config.ConfigError, match=said):
        config.from_toml(text, source="run.toml")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "  "}, "give the run a name"),
        ({"name": "a/b"}, "without slashes"),
        ({"data": config.Folder()}, "choose the folder"),
        ({"data": config.Table()}, "choose the table"),
        ({"model": config.TinyTowers(text_heads=3)}, "does not divide model.text_width"),
        ({"model": config.TinyTowers(image_tower="vit", patch_size=7)}, "does not divide model.image_size"),
        ({"model": config.TinyTowers(image_size=48)}, "multiple of 32"),
        (
            {"model": config.TinyTowers(projection="mlp"), "objective": config.SimClr()},
            r"model\.projection mlp leads into .* SimCLR lacks",
        ),
        ({"objective": config.Pcl(queue=200)}, r"objective\.queue 200 must be a multiple.*choose 256"),
        ({"objective": config.Pcl(queue=64)}, r"objective\.queue 64 must be a multiple.*choose 128"),
        ({"objective": config.Triplet(per_class=5)}, r"objective\.per_class 5 must divide"),
        ({"objective": config.Margin(per_class=128)}, r"objective\.per_class 128 must divide.*at least twice"),
        (
            {"objective": config.Word2Vec(), "optimizer": config.Optimizer(micro_batch=16)},
            r"optimizer\.micro_batch 16 cannot be used with word2vec",
        ),
        (
            {"objective": config.Byol(), "optimizer": config.Optimizer(micro_batch=16)},
            r"optimizer\.micro_batch 16 would change the gradient of BYOL",
        ),
        (
            {"optimizer": config.Optimizer(batch_size=129, micro_batch=16)},
            r"optimizer\.micro_batch 16 leaves a part of one row .* choose 17\.",
        ),
        ({"optimizer": config.Optimizer(batch_size=3, micro_batch=2)}, r"micro_batch 2 leaves .* choose 0\."),
    ],
)
def test_choices_that_contradict_each_other_are_refused(changes, said):
    run = dataclasses.replace(config.Run(), **changes)
    with pytest.raises(config.ConfigError, match=said):
        config.check(run)
    assert config.problems(run)
    ((name, fault),) = config.faults(run).items()
    if fault.better is not None:
        assert not config.faults(config.replace(run, name, str(fault.better)))


def test_a_batch_has_no_more_than_the_pairs_to_train_on():
    run = config.Run()
    assert not config.faults(run, 128)
    fault = config.faults(run, 42)["optimizer.batch_size"]
    assert fault.better == 32
    assert not config.faults(config.replace(run, "optimizer.batch_size", "32"), 42)
    assert config.faults(run, 1)["data"].better is None
    assert not config.faults(config.replace(run, "optimizer.epochs", "0"), 1), "what is only measured needs no batch"


def test_a_value_out_of_bounds_is_mended_by_the_bound():
    fault = config.faults(config.Run(optimizer=config.Optimizer(batch_size=1)))["optimizer.batch_size"]
    assert (fault.better, type(fault.better)) == (2, int)


def test_whole_numbers_are_taken_where_decimals_are_meant():
    run = config.from_toml("[objective]\nkind = 'cloob'\ninv_tau = 30")
    assert run.objective == config.Cloob(inv_tau=30.0)
    assert type(run.objective.inv_tau) is float


def test_fields_are_replaced_by_their_dotted_name():
    run = config.replace(config.Run(), "objective", "cloob")
    run = config.replace(run, "objective.scale_hopfield", "12")
    run = config.replace(config.replace(run, "optimizer.batch_size", "64"), "name", "mine")
    assert (run.objective, run.optimizer.batch_size, run.name) == (config.Cloob(scale_hopfield=12.0), 64, "mine")
    assert config.replace(config.Run(), "objective.learn_inv_tau", "no").objective.learn_inv_tau is False
    for dotted, value in {"optimizer.batch_size": "many", "optimizer.nope": "1", "nope": "1"}.items():
        with pytest.raises(config.ConfigError, match=dotted):
            config.replace(run, dotted, value)


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(config.ConfigError, match=r"gone\.toml cannot be read"):
        config.read(tmp_path / "gone.toml")
    (tmp_path / "run.toml").write_text("seed = 'x'")
    with pytest.raises(config.ConfigError, match=r"run\.toml"):
        config.read(tmp_path / "run.toml")


def test_the_default_temperature_is_clips():
    assert math.isclose(config.Clip().inv_tau, 1 / 0.07)


@pytest.mark.parametrize("kind", config.choices(config.Objective), ids=lambda kind: kind.kind)
def test_every_objective_says_what_it_is_and_where_it_comes_from(kind):
    assert kind.label
    assert kind.paper.startswith("https://")
    assert kind.paper in (kind.__doc__ or "")
    assert kind.towers in ("both", "image", "words", "source")
    of = {"of": "a run"} if kind is config.EmbeddingDecoder else {}
    config.check(dataclasses.replace(config.Run(), objective=kind(**of)))


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (config.Shards(path="/data/emoji-pairs/train"), "emoji-pairs"),
        (config.Shards(path="/data/shards/{000..150}.tar"), "shards"),
        (config.Folder(path="/data/pets"), "pets"),
        (config.Folder(path="train"), "train"),
        (config.Table(path="/data/pairs.csv"), "pairs"),
        (config.Scenes(), "Scenes"),
    ],
)
def test_data_are_called_what_a_person_calls_them(data: config.Data, name: str) -> None:
    assert config.data_name(data) == name


def test_set_and_grid_know_the_same_names_and_say_which_fields_there_are():
    run = config.Run(objective=config.Cloob())
    for name in ("beta", "objective.beta", "objective.scale_hopfield"):
        assert config.replace(run, name, "14.3").objective.scale_hopfield == 14.3
        (made,) = grid.repeated(run, grid={name: ["14.3"]})
        assert made.objective.scale_hopfield == 14.3
        assert made.name.endswith("beta 14.3")
    for name in ("tau", "objective.tau"):
        assert config.replace(run, name, "0.05").objective.inv_tau == pytest.approx(20)
    assert config.replace(run, "batch", "64").optimizer.batch_size == 64
    # The margin loss has a beta of its own, the boundary.
    margin = config.Run(objective=config.Margin())
    assert config.replace(margin, "beta", "1.1").objective.beta == 1.1
    for field in config.flatten(run):
        assert names.meant(field, config.flatten(run)) == field


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("objective.beta", "4", r"objective\.beta: a run of CLIP has no such field.*objective\.inv_tau \(or objective"),
        ("objective.scale_hopfeld", "4", r"There are .*objective\.learn_inv_tau"),
        ("optimizer.batchsize", "4", r"Did you mean optimizer\.batch_size\?"),
        ("speed", "4", r"There are name, seed, device, .*such as optimizer\.batch_size\."),
        ("tau", "-1", "a positive number"),
        ("tau", "warm", "a positive number"),
    ],
)
def test_a_field_that_there_is_not_is_answered_with_those_there_are(name: str, value: str, words: str):
    for change in (config.replace, lambda run, name, value: grid.repeated(run, grid={name: [value]})):
        with pytest.raises(config.ConfigError, match=words):
            change(config.Run(), name, value)


def test_a_grid_refuses_one_field_under_two_names():
    with pytest.raises(config.ConfigError, match=r"beta and objective\.scale_hopfield are the same field"):
        grid.repeated(config.Run(objective=config.Cloob()), grid={"beta": ["4"], "objective.scale_hopfield": ["8"]})


@pytest.mark.parametrize("objective", config.SECTIONS["objective"], ids=lambda kind: kind.kind)
def test_the_help_of_every_objective_has_formula_paper_and_caveat(objective):
    sentence, text = help_of(objective)
    assert sentence.endswith(".")
    minimized, symbols, cited, caveats = text.split("\n\n")
    assert minimized.startswith("Minimized: ")
    assert symbols
    assert objective.paper in cited
    assert caveats.startswith("Caveats: ")
    assert "`" not in text


def test_the_help_of_an_objective_of_a_plug_in_is_its_docstring():
    class Own(config.Clip):
        """Compare pictures.

        Somebody, 2026, https://example.org/paper
        """

        kind = "own"

    assert help_of(Own) == ("Compare pictures.", "Somebody, 2026,\nhttps://example.org/paper")


def test_snapshots_are_evenly_apart_from_the_first_to_the_last_step() -> None:
    for count, total in itertools.product((2, 3, 6, 7, 40), (1, 5, 64, 333, 10_000)):
        steps = config.Watching(snapshots=count).snapshot_steps(total)
        assert steps == {round(step) for step in np.linspace(0, total, count)}
