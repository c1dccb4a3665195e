"""What an experiment asks: arms, seeds, budget and outcome; TOML both ways.

A definition holds the whole configuration of each arm, so that a preset that changes later changes nothing, and the
file alone repeats the experiment elsewhere. Reading one starts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

import tomli_w

from trainer import config
from trainer.config import ConfigError
from trainer.config.ablation import FOUR, PRESET
from trainer.config.grid import repeated as repeated_runs
from trainer.config.presets import preset as preset_of
from trainer.config.reading import toml_text
from trainer.metrics import data_label, metric, split_label
from trainer.untrusted import files as untrusted_files

MOST_ARMS: Final = 12
MOST_SEEDS: Final = 100
MOST_OUTCOMES: Final = 40
MOST_LETTERS: Final = 80
"""Of the names of an experiment and an arm."""
_FREE: Final = ("name", "seed")
"""Fields in which the arms may differ without saying so."""


@dataclass(frozen=True)
class Outcome:
    """A number that every run is judged by, at its last step."""

    metric: str  # Of an evaluation, without split: `image_to_text_R@1`.
    split: str  # Of the held-out data: `renderings`.
    direction: Literal["up", "down"] = "up"  # Whether more is better.
    dataset: str = ""  # Of the evaluation; empty: whichever has the split.

    @property
    def label(self) -> str:
        """The metric and where it is measured, for people."""
        where = data_label(self) if self.dataset else split_label(self.split)
        return f"{metric(f'val/{self.metric}').label}, {where}"


@dataclass(frozen=True)
class Arm:
    """A configuration; its seed is that of no run, but replaced by the seeds of the experiment."""

    name: str
    run: config.Run


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Arms over seeds."""

    name: str  # Unique in a workspace.
    question: str = ""  # What it shall tell, a sentence.
    arms: tuple[Arm, ...]  # Each later one is compared with the first, the control.
    outcome: Outcome  # Decides; fixed before the first run.
    secondaries: tuple[Outcome, ...] = ()  # Told too, adjusted for their number (Bonferroni), and decide nothing.
    fields: tuple[str, ...] = ()  # In which the arms differ: fields, or sections such as `objective`.
    margin: float = 0.0  # Differences of the outcome below it count as none; 0: nothing is ever called equal.
    alpha: float = 0.05  # Probability that any comparison is decided wrongly, at whatever seed it stops.
    first_seed: int = 0  # Of the seeds, which count up from it.
    least_seeds: int = 3  # Trained before anything is decided.
    most_seeds: int = 5  # No more are added; 0: seeds are added until it is decided or its hours are used up.
    hours: float = 0.0  # Of training over all runs, after which no seed is added; 0: no limit.
    preset: str = ""  # Noted with every run, so that those of a short form (`ablation`) are found again.

    @property
    def control(self) -> Arm:
        """The arm that the others are compared with."""
        return self.arms[0]

    @property
    def comparisons(self) -> int:
        """Arms that are compared with the control; alpha is shared among them (Bonferroni)."""
        return len(self.arms) - 1

    @property
    def seeds(self) -> range:
        """All seeds of the budget, in the order in which they are trained."""
        return range(self.first_seed, self.first_seed + (self.most_seeds or MOST_SEEDS))

    def arm(self, name: str) -> Arm | None:
        """Return the arm with this name; None if there is none."""
        return next((arm for arm in self.arms if arm.name == name), None)

    def run_of(self, arm: Arm, seed: int) -> config.Run:
        """Return the configuration of an arm's run with this seed."""
        name = f"{self.name[:60]}, {arm.name[:60]}, seed {seed}"
        return replace(arm.run, name=name, seed=seed)


def check(experiment: Experiment) -> None:
    """Check what the types of the fields do not say.

    Raises:
        ConfigError: Names the field, and what to choose instead.
    """
    for name in (experiment.name, *(arm.name for arm in experiment.arms)):
        if not name.strip() or len(name) > MOST_LETTERS or config.name_fault(name):
            raise ConfigError(f"{name[:100]!r} cannot be a name here: write 1 to {MOST_LETTERS} plain letters.")
    if len(experiment.preset) > MOST_LETTERS or not experiment.preset.isprintable():
        raise ConfigError(f"preset: write at most {MOST_LETTERS} visible letters.")
    if len(experiment.question) > 1_000:
        raise ConfigError("question: write at most 1,000 letters.")
    if not 2 <= len(experiment.arms) <= MOST_ARMS:
        raise ConfigError(f"An experiment has 2 to {MOST_ARMS} arms, this one {len(experiment.arms)}.")
    names = [arm.name for arm in experiment.arms]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"Two arms are called {twice!r}. Give each its own name.")
    _check_numbers(experiment)
    for outcome in (experiment.outcome, *experiment.secondaries):
        _check_outcome(outcome)
    if len(experiment.secondaries) > MOST_OUTCOMES:
        raise ConfigError(f"At most {MOST_OUTCOMES} secondary outcomes can be listed.")
    if experiment.outcome in experiment.secondaries:
        raise ConfigError("The primary outcome is also listed as secondary. Remove it there.")
    for arm in experiment.arms:
        config.check(replace(arm.run, name="run"))
    _check_fields(experiment)


def differing(arms: Sequence[Arm]) -> tuple[str, ...]:
    """Return the fields in which any arm differs from the first; of objectives of several kinds the section alone."""
    changed: dict[str, None] = {}
    for arm in arms[1:]:
        names = [name for name, _, _ in config.difference(arms[0].run, arm.run) if name not in _FREE]
        sections = {name for name in names if name in config.SECTIONS}
        changed |= dict.fromkeys(name for name in names if name.partition(".")[0] not in sections - {name})
    return tuple(name for name in changed if name in config.SECTIONS or name.partition(".")[0] not in changed)


def declared(experiment: Experiment, name: str) -> bool:
    """Return whether the arms may differ in a field."""
    return name in _FREE or any(name == field or name.startswith(f"{field}.") for field in experiment.fields)


def to_toml(experiment: Experiment) -> str:
    """Return the whole definition as one file."""
    document: dict[str, Any] = {
        field.name: getattr(experiment, field.name)
        for field in fields(Experiment)
        if field.name not in ("arms", "outcome", "secondaries", "fields")
        and (field.name != "preset" or experiment.preset)
    }
    document["fields"] = list(experiment.fields)
    document["outcome"] = asdict(experiment.outcome)
    document["secondary"] = [asdict(outcome) for outcome in experiment.secondaries]
    document["arm"] = [{"name": arm.name, "config": _plain(arm.run)} for arm in experiment.arms]
    return tomli_w.dumps(document)


def read(path: Path) -> Experiment:
    """Read and check the definition in a file; relative paths of data start at the current folder, as in `fit`.

    Raises:
        ConfigError: The file cannot be read, or does not define an experiment.
    """
    return _placed(from_toml(toml_text(path), source=path.name))


def _placed(experiment: Experiment) -> Experiment:
    """Return it with absolute paths of data, because its trainers work in another folder."""
    arms = (replace(arm, run=replace(arm.run, data=config.absolute(arm.run.data))) for arm in experiment.arms)
    return replace(experiment, arms=tuple(arms))


def from_toml(text: str, *, source: str = "experiment") -> Experiment:
    """Return the definition in a text: an arm has a whole `config`, or a `preset`, and `set` changes fields of either.

    A `set` of the document changes every arm, before the arm's own.

    Raises:
        ConfigError: It is not valid TOML, or does not define an experiment.
    """
    try:
        document = untrusted_files.parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}. Correct that line and try again.") from error
    shared = {"data", "epochs", "set", "arm", "secondary"}
    names = {*shared, *(field.name for field in fields(Experiment))} - {"arms", "secondaries"}
    if wrong := next((key for key in document if key not in names), None):
        raise ConfigError(f"{source}: unknown field {wrong!r}; known are {', '.join(sorted(names))}.")
    arms = tuple(_arm(values, document, source) for values in _tables(document, "arm", source))
    plain = {name: document[name] for name in document if name not in shared}
    if "name" not in plain or "outcome" not in plain:
        raise ConfigError(f"{source}: an experiment needs a name and an [outcome] with metric and split.")
    made = Experiment(
        **plain
        | {"arms": arms, "outcome": _outcome(plain["outcome"], source)}
        | {"secondaries": tuple(_outcome(values, source) for values in _tables(document, "secondary", source))}
        | {"fields": _texts(plain.get("fields"), source) if "fields" in plain else differing(arms)}
        | {name: _float(plain[name]) for name in ("margin", "alpha", "hours") if name in plain}
    )
    _check_types(made, source)
    check(made)
    return made


def of_presets(
    name: str, presets: Iterable[str], outcome: Outcome, *, changes: Iterable[str] = (), **values: Any
) -> Experiment:
    """Return an experiment with one arm per preset, named after its objective, or after the preset where that repeats.

    Args:
        presets: At least two; the first is the control.
        outcome: The primary one.
        changes: `FIELD=VALUE` made in every arm.
        values: Other fields of `Experiment`.

    Raises:
        ConfigError: There is no such preset, or the arms make no experiment.
    """
    named = {preset: preset_of(preset) for preset in presets}
    labels = [run.objective.label for run in named.values()]
    arms = tuple(
        Arm(run.objective.label if labels.count(run.objective.label) == 1 else preset, changed(run, changes))
        for preset, run in named.items()
    )
    made = Experiment(name=name, arms=arms, outcome=outcome, **values | {"fields": differing(arms)})
    check(made)
    return _placed(made)


def repeated(run: config.Run, field: str, texts: Sequence[str], outcome: Outcome, **values: Any) -> Experiment:
    """Return an experiment that varies one field of a run; the run as it is, is the control.

    Raises:
        ConfigError: The run has no such field, or a value does not fit.
    """
    name = config.repaired_name(values.pop("name", "") or f"{run.name[:50]}, {field}")
    value = config.flatten(run).get(field, "as it is")
    arms = [Arm(f"{field} {value}"[:MOST_LETTERS], run)]
    for text in dict.fromkeys(texts):
        changed = config.replace(run, field, text)
        if changed not in (arm.run for arm in arms):
            arms.append(Arm(f"{field} {text}"[:MOST_LETTERS], changed))
    made = Experiment(name=name, arms=tuple(arms), outcome=outcome, **values | {"fields": differing(arms)})
    check(made)
    return made


def clip_and_cloob(run: config.Run | None, taken: Iterable[str] = (), *, seeds: int | None = None) -> Experiment:
    """Return the experiment of the window's first button: CLIP against CLOOB, 3 to 5 seeds, a margin of 2 points.

    Args:
        run: Both arms have its data, towers and schedule; None: the presets of Scenes.
        taken: Names of experiments that cannot be used again.
        seeds: Each objective is trained with exactly so many; None: 3 to 5.
    """
    presets = ("clip-scenes", "cloob-scenes")
    masks = run is not None and getattr(run.objective, "mask_duplicates", False)
    objectives = (config.Clip(mask_duplicates=masks), config.Cloob(mask_duplicates=masks))
    made = [preset_of(name) for name in presets] if run is None else [replace(run, objective=o) for o in objectives]
    budget: dict[str, Any] = {} if seeds is None else {"least_seeds": seeds, "most_seeds": seeds}
    return of_pair(
        made[0], made[1], taken, question="Does CLOOB find captions better than CLIP?",
        secondaries=(Outcome("text_to_image_R@1", default_outcome(made[0]).split),),
        first_seed=0 if run is None else run.seed, **budget,
    )  # fmt: skip


def of_pair(run_a: config.Run, run_b: config.Run, taken: Iterable[str] = (), **values: Any) -> Experiment:
    """Return the experiment of two runs: 3 to 5 seeds that neither has, a margin of 2 points, but for `values`.

    Raises:
        ConfigError: They do not differ, or cannot be trained with the same outcome.
    """
    runs = (run_a, run_b)
    labels = [run.objective.label for run in runs]
    if labels[0] == labels[1]:
        labels = [config.repaired_name(run.name[:60]) for run in runs]
    arms = tuple(Arm(label, run) for label, run in zip(labels, runs, strict=True))
    name = free_name(f"{labels[0]} + {labels[1]} on {config.data_name(run_a.data)}", taken)
    about: dict[str, Any] = {"question": f"Is {labels[1]} better than {labels[0]}?"}
    about |= {"first_seed": 1 + max(run.seed for run in runs)} | values
    made = Experiment(
        name=name, arms=arms, outcome=default_outcome(run_a), fields=differing(arms), margin=0.02, **about
    )
    check(made)
    return made


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for an experiment, counted up where it is taken."""
    base, used = config.repaired_name(name[:60]), {*taken}
    return next(n for n in (base, *(f"{base} {count}" for count in range(2, len(used) + 3))) if n not in used)


def ablation(run: config.Run, taken: Iterable[str] = (), *, seeds: int = 1) -> Experiment:
    """Return the four-way ablation of CLOOB's paper: `run` with each objective in its defaults, `seeds` from its own.

    Raises:
        ConfigError: One of the objectives cannot be trained so.
    """
    level = getattr(run.data, "cooccurrence", None)
    after = "" if level is None else f", co-occurrence {level:g}"
    question = "What do Hopfield retrieval and InfoLOOB change, alone and together?"
    arms = tuple(Arm(label, replace(run, objective=objective())) for label, objective in FOUR)
    return of_runs(free_name(f"Ablation{after}", taken), arms, seeds, run.seed, question=question, preset=PRESET)


def data_efficiency(
    runs: Sequence[config.Run],
    shares: Sequence[float],
    taken: Iterable[str] = (),
    *,
    seeds: int = 3,
    updates: bool = True,
) -> Experiment:
    """Return the experiment of how few training pairs suffice: each run with shares of its training pairs.

    Args:
        runs: One per objective; the first, with its largest share, is the control.
        shares: Of the training pairs, in (0, 1]; smaller ones are part of larger ones.
        taken: Names of experiments that cannot be used again.
        seeds: Each arm is trained with.
        updates: All arms take about as many updates: a smaller share is passed over more often. Else as many epochs.

    Raises:
        ConfigError: There are too few or too many arms, or one of them cannot be trained.
    """
    descending = sorted({*shares}, reverse=True)
    if len(descending) < 2:
        raise ConfigError("Give at least two shares of the training pairs, such as 0.25 0.5 1.")
    labels = [run.objective.label for run in runs]
    arms = []
    for run, label in zip(runs, labels, strict=True):
        arm_label = label if labels.count(label) == 1 else run.name
        for share in descending:
            part = config.replace(run, "data.train_share", f"{share:.12g}")
            if updates:
                part = config.replace(
                    part, "optimizer.epochs", str(round(run.optimizer.epochs * descending[0] / share))
                )
            arms.append(Arm(f"{arm_label}, {100 * share:g} %"[:MOST_LETTERS], part))
    question = "How does the outcome depend on the number of training pairs?"
    name = free_name(f"Data efficiency on {config.data_name(runs[0].data)}", taken)
    return of_runs(name, tuple(arms), seeds, runs[0].seed, question=question)


def of_grid(
    template: config.Run, grid: Mapping[str, Sequence[str]], seeds: Sequence[int], taken: Iterable[str] = ()
) -> Experiment | None:
    """Return the experiment of a grid over seeds: an arm per combination; None where it is none.

    One without arms to compare, with more of them than an experiment has, with seeds that do not follow each other, of
    decoders, or whose runs are not measured on held-out pairs is trained run by run.
    """
    all_seeds = list(seeds) or [template.seed]
    if (
        not grid
        or template.objective.source is not None
        or sorted(all_seeds) != [*range(min(all_seeds), min(all_seeds) + len(all_seeds))]
    ):
        return None
    runs = repeated_runs(template, grid=grid)
    arms = tuple(Arm(run.name.removeprefix(f"{template.name}, ")[:MOST_LETTERS], run) for run in runs)
    try:
        made = of_runs(free_name(template.name, taken), arms, len(all_seeds), min(all_seeds))
        check_measured(made)
    except ConfigError:
        return None
    return made


def of_runs(name: str, arms: tuple[Arm, ...], seeds: int, first_seed: int = 0, **values: Any) -> Experiment:
    """Return an experiment that trains every arm with as many seeds, whatever they show, with the default outcome."""
    outcome, budget = default_outcome(arms[0].run), {"least_seeds": seeds, "most_seeds": seeds}
    made = Experiment(
        name=name, arms=arms, outcome=outcome, fields=differing(arms), first_seed=first_seed, **budget | values
    )  # fmt: skip
    check(made)
    return made


def default_outcome(run: config.Run) -> Outcome:
    """Return the outcome of a run for which none is named: recall of its held-out split, or neighbors without texts."""
    split = (*run.data.heldout, "heldout")[0]
    return Outcome("image_to_text_R@1" if run.objective.compares_pairs else "knn_acc1", split)


def check_measured(experiment: Experiment) -> None:
    """Check that training measures the primary outcome, as far as the splits of the data are known.

    Raises:
        ConfigError: It does not; names the splits there are.
    """
    outcome = experiment.outcome
    for arm in experiment.arms:
        data = arm.run.data
        splits = data.heldout
        if splits and outcome.split not in splits and outcome.dataset in ("", config.data_name(data)):
            raise ConfigError(
                f"No run would be measured on the split {outcome.split!r}: the data of {arm.name} hold out "
                f"{' and '.join(splits)}. Choose one of these as outcome.split; data.heldout_path names other pairs "
                "to hold out."
            )


def check_data(experiment: Experiment) -> None:
    """Check that the data of every arm exist on this computer.

    Raises:
        ConfigError: Names the arm, the field and the path.
    """
    for arm in experiment.arms:
        field, path = config.missing_path(arm.run.data)
        if field:
            raise ConfigError(
                f"The data of {arm.name} were not found: {field} is {path}, which does not exist. Correct the path in "
                "the definition, or export it (trainer experiment export), correct it there and import it again."
            )


def _plain(run: config.Run) -> dict[str, Any]:
    return untrusted_files.parse_toml(config.to_toml(run))


def _arm(values: Mapping[str, Any], document: Mapping[str, Any], source: str) -> Arm:
    names = ("name", "preset", "config", "set")
    if wrong := next((key for key in values if key not in names), None):
        raise ConfigError(f"{source} [[arm]]: unknown field {wrong!r}; known are {', '.join(names)}.")
    run = run_of(values, document, f"{source} [[arm]]")
    return Arm(str(values.get("name") or values.get("preset") or run.objective.label), run)


def run_of(values: Mapping[str, Any], document: Mapping[str, Any], source: str) -> config.Run:
    """Return the run of the `preset` or `config` in `values`; `data`, `epochs` and `set` of the document, then `set`.

    Raises:
        ConfigError: They define no run; the message begins with `source`.
    """
    if ("preset" in values) == ("config" in values):
        raise ConfigError(f"{source}: give either a preset or a config.")
    if "preset" in values:
        run = preset_of(str(values["preset"]))
    elif isinstance(values["config"], dict):
        run = config.from_dict(values["config"], source=f"{source} config")
    else:
        raise ConfigError(f"{source}: config must be a table, as a preset file has it.")
    if "data" in document:
        run = replace(run, data=config.from_dict({"data": document["data"]}, source=source).data)
    if "epochs" in document:
        run = config.replace(run, "optimizer.epochs", str(document["epochs"]))
    for changes in (document.get("set", {}), values.get("set", {})):
        if not isinstance(changes, dict):
            raise ConfigError(f'{source}: write set = {{"objective.beta" = 8}}.')
        run = changed(run, (f"{field}={value}" for field, value in dotted(changes).items()))
    return run


def dotted(values: Mapping[str, Any], before: str = "", *, leaves: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return nested tables with dotted names: `objective.beta = 8` in TOML is a table in a table.

    Args:
        values: The tables.
        before: What the names begin with.
        leaves: A table with one of these names is a value.
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        is_table = isinstance(value, dict) and not leaves & {*value}
        flat |= dotted(value, f"{before}{name}.", leaves=leaves) if is_table else {f"{before}{name}": value}
    return flat


def changed(run: config.Run, changes: Iterable[str]) -> config.Run:
    """Return the run with each `FIELD=VALUE`.

    Raises:
        ConfigError: One is not written so, or the run has no such field or takes no such value.
    """
    before, stated = run, list[str]()
    for change in changes:
        field, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"{change}: write FIELD=VALUE, e.g. objective.beta=8.")
        run = config.replace(run, field.strip(), value.strip())
        stated.append(config.meant(field.strip(), config.flatten(run)) or field)
    return config.by_weights(before, run, stated)


def _tables(document: Mapping[str, Any], name: str, source: str) -> list[Mapping[str, Any]]:
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{source}: write [[{name}]] before each of them.")
    most = MOST_ARMS if name == "arm" else MOST_OUTCOMES
    if len(tables) > most:
        raise ConfigError(f"{source}: an experiment has at most {most} [[{name}]], this one {len(tables):,}.")
    return tables


def _outcome(values: Any, source: str) -> Outcome:
    names = [field.name for field in fields(Outcome)]
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ConfigError(f"{source}: an outcome is a table of texts: metric, split and direction.")
    if wrong := next((key for key in values if key not in names), None):
        raise ConfigError(f"{source}: an outcome has no {wrong!r}; known are {', '.join(names)}.")
    if "metric" not in values or "split" not in values:
        raise ConfigError(f"{source}: an outcome needs a metric and a split.")
    better = metric(f"val/{values['metric']}").better
    plain: dict[str, Any] = {"direction": better if better in ("up", "down") else ""} | values
    return Outcome(**plain)


def _check_outcome(outcome: Outcome) -> None:
    for name in ("metric", "split", "dataset"):
        if len(getattr(outcome, name)) > 200 or (name != "dataset" and not getattr(outcome, name).strip()):
            raise ConfigError(f"outcome.{name}: write 1 to 200 letters.")
        if not getattr(outcome, name).isprintable():
            raise ConfigError(f"outcome.{name}: write visible letters only; {getattr(outcome, name)!a} has others.")
    if outcome.direction not in ("up", "down"):
        raise ConfigError(f"outcome.direction of {outcome.metric}: write up if more is better, down if less is.")
    if "loss" in outcome.metric:
        raise ConfigError(
            f"{outcome.metric} cannot be an outcome: losses of different objectives are different quantities. "
            "Choose a recall or an accuracy."
        )


def _check_numbers(experiment: Experiment) -> None:
    least, most = experiment.least_seeds, experiment.most_seeds
    if not 1 <= least <= (most or MOST_SEEDS) <= MOST_SEEDS:
        raise ConfigError(
            f"least_seeds {least} and most_seeds {most}: choose 1 <= least <= most <= {MOST_SEEDS}, or a most of 0 for "
            "a budget without an end."
        )
    if not 0 <= experiment.first_seed <= 2**31:
        raise ConfigError(f"first_seed {experiment.first_seed}: choose 0 or more.")
    bounds = {"margin": (0.0, 1e9), "alpha": (1e-6, 0.5), "hours": (0.0, 1e6)}
    for name, (low, high) in bounds.items():
        value = getattr(experiment, name)
        if not math.isfinite(value) or not low <= value <= high:
            raise ConfigError(f"{name} {value:g}: choose {low:g} to {high:g}.")


def _check_fields(experiment: Experiment) -> None:
    for arm in experiment.arms[1:]:
        different = config.difference(experiment.control.run, arm.run)
        if not any(name not in _FREE for name, _, _ in different):
            raise ConfigError(f"The arm {arm.name!r} is the same as {experiment.control.name!r}. Change a field of it.")
        hidden = [name for name, _, _ in different if not declared(experiment, name)]
        if hidden:
            raise ConfigError(
                f"The arm {arm.name!r} also differs from {experiment.control.name!r} in {', '.join(hidden[:6])}: what "
                "it shows could come from there. Make them equal, or add them to `fields`."
            )


def _check_types(experiment: Experiment, source: str) -> None:
    kinds: dict[str, type] = {
        "name": str,
        "question": str,
        "preset": str,
        "first_seed": int,
        "least_seeds": int,
        "most_seeds": int,
    }
    for name, kind in (kinds | {"margin": float, "alpha": float, "hours": float}).items():
        if type(getattr(experiment, name)) is not kind:
            raise ConfigError(f"{source}: {name} must be {'a text' if kind is str else 'a number'}.")


def _float(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _texts(value: Any, source: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise ConfigError(f'{source}: write fields = ["objective"].')
    return tuple(value)
