"""Prompt suites: class names and prompt templates for zero-shot classification. Imports no torch."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeGuard

from trainer import config
from trainer.config import default_paths
from trainer.errors import UserError
from trainer.untrusted import files as untrusted_files

MOST_SUITE: Final = 64 << 20
"""Bytes of a file of prompts."""
_SUITE_FILES: Final = (
    'Give a JSON object of class -> list of sentences, or {"classes": [...], "templates": ["a photo of a {}."]}.'
)
ZERO_SHOT: Final = "zero_shot"
"""Fact of a run: the zero-shot question that it is asked."""


@dataclass(frozen=True)
class PromptSuite:
    """Class names and prompt templates for zero-shot classification."""

    name: str  # As the file is called.
    classes: tuple[str, ...]  # Plain class names, in the order of the data set's numbers of classes.
    templates: tuple[str, ...]  # Sentences with one `{}` for the class name, as `captioned` words it.
    source: str
    license: str  # Under which it may be used.
    # Names of classes by what the data set calls their folders, where that is a code or another name.
    folders: Mapping[str, str] = field(default_factory=dict)
    # Where the templates are from: `prompts` were written for these classes, `captions` word the captions of the
    # pairs, and `plain` is what is asked where neither is known.
    worded: Literal["prompts", "captions", "plain"] = "prompts"
    # Whole prompts of each class, where every class has its own and there are no templates.
    sentences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def prompts_of(self, name: str) -> tuple[str, ...]:
        """Return what is asked about a class: its own sentences, else its name in every template."""
        from trainer.analysis.class_prompts import captioned

        return self.sentences.get(name) or tuple(captioned(template, name) for template in self.templates)


def prompt_suites() -> dict[str, PromptSuite]:
    """Return name -> suite of every bundled prompt suite, sorted by name.

    Raises:
        UserError: A suite's file is damaged.
    """
    files = sorted((default_paths.assets_dir() / "prompts").glob("*.json"))
    suites = [_read_suite(path, path.stat().st_mtime_ns) for path in files]
    return {suite.name: suite for suite in suites}


def suite_in(path: Path) -> PromptSuite:
    """Return the suite of a person's file: sentences of each class, or classes and templates as the bundled ones have.

    A JSON object of class -> list of sentences is what CuPL publishes (Pratt et al., What does a platypus look like?
    Generating customized prompts for zero-shot image classification, 2023, https://arxiv.org/abs/2209.03320).

    Raises:
        UserError: The file is neither.
    """
    try:
        document = untrusted_files.read_record(path, MOST_SUITE)
    except (OSError, ValueError) as error:
        raise UserError(f"The prompts of {path} cannot be read: {error}. {_SUITE_FILES}") from error
    classes, templates = document.get("classes"), document.get("templates")
    if _are_texts(classes) and _are_texts(templates):
        bad = next((template for template in templates if template.count("{}") != 1), "")
        if len(classes) < 2 or not templates or bad:
            raise UserError(f"{path}: {bad!r} does not have one {{}}, or there is no template. {_SUITE_FILES}")
        return PromptSuite(path.stem, tuple(classes), tuple(templates), str(path), "")
    wrong = next((name for name, prompts in document.items() if not _are_texts(prompts) or not prompts), None)
    if wrong is not None or len(document) < 2:
        raise UserError(f"{path}: class {wrong!r} has no list of sentences, or there are no two. {_SUITE_FILES}")
    sentences = {name: tuple(prompts) for name, prompts in document.items()}
    return PromptSuite(path.stem, tuple(sentences), (), str(path), "", sentences=sentences)


def published_suite(dataset: str) -> PromptSuite | None:
    """Return the bundled suite with the longest name that is a prefix of the data set's name, by letters and digits."""
    plain = plain_name(dataset)
    fitting = [suite for name, suite in prompt_suites().items() if plain.startswith(plain_name(name))]
    return max(fitting, key=lambda suite: len(suite.name), default=None)


def plain_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def learned_suite(
    dataset: str, captions: Sequence[str], labels: Sequence[str], *, stated: str = ""
) -> PromptSuite | None:
    """Return the zero-shot question about pairs with classes: the classes, in the sentences of the pairs' captions.

    Args:
        dataset: Its name; a bundled suite of this name that has all of the labels gives the classes.
        captions: One a pair.
        labels: The class of each pair, empty where it has none.
        stated: The template of class captions in the settings of the data.

    Returns:
        None where there are no two classes. Without sentences that captions of classes share, the published prompts
        are asked, else the plain sentence.
    """
    classes = tuple(sorted({*labels} - {""}))
    published = published_suite(dataset)
    if published is None or not classes or not {*classes} <= {*published.classes}:
        if len(classes) < 2:
            return None
        published = PromptSuite(dataset, classes, (), f"labels of {dataset}", "")
    elif dataset == config.Scenes.kind:
        return published  # its templates are its captions, with the class left open
    from trainer.analysis.class_prompts import PLAIN_TEMPLATE, learned_templates

    if learned := learned_templates(captions, labels, stated=stated):
        return dataclasses.replace(published, templates=learned, worded="captions")
    if published.templates:
        return published
    return dataclasses.replace(published, templates=(PLAIN_TEMPLATE,), worded="plain")


def lacks_classes(of: str = "The data") -> str:
    """Return the sentence about data in which `learned_suite` finds no classes."""
    return f"{of} has fewer than two classes."


def untrained_suite(suite: PromptSuite | None) -> PromptSuite | None:
    """Return the question about the same classes for a model that learned no caption of the data: published prompts."""
    bundled = None if suite is None else prompt_suites().get(suite.name)
    return bundled if suite is not None and bundled is not None and bundled.classes == suite.classes else suite


def suite_facts(suite: PromptSuite | None) -> dict[str, Any]:
    """Return what a run stores of the zero-shot question that it is asked; empty without one."""
    if suite is None:
        return {}
    bundled = prompt_suites().get(suite.name)
    classes = [] if bundled is not None and bundled.classes == suite.classes else list(suite.classes)
    about = {"suite": suite.name, "source": suite.source, "worded": suite.worded}
    return {**about, "classes": classes, "templates": list(suite.templates)}


def suite_of_facts(facts: object) -> PromptSuite | None:
    """Return the question that `suite_facts` stored; None for anything else."""
    stored = facts if isinstance(facts, dict) else {}
    name, classes, templates = stored.get("suite"), stored.get("classes"), stored.get("templates")
    if not isinstance(name, str) or not _are_texts(classes) or not _are_texts(templates):
        return None
    bundled = prompt_suites().get(name)
    names = tuple(classes) or (bundled.classes if bundled is not None else ())
    sentences = tuple(template for template in templates if template.count("{}") == 1)
    if len(names) < 2 or not sentences:
        return None
    worded = stored.get("worded")
    made = PromptSuite(name, names, sentences, str(stored.get("source", "")), "")
    return dataclasses.replace(made, worded=worded) if worded in ("captions", "plain") else made


def _are_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


@functools.lru_cache(maxsize=256)
def _read_suite(path: Path, _mtime_ns: int) -> PromptSuite:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return PromptSuite(
            name=str(document.get("name", path.stem)),
            classes=tuple(map(str, document["classes"])),
            templates=tuple(map(str, document["templates"])),
            source=str(document.get("source", "")),
            license=str(document.get("license", "")),
            folders={str(folder): str(name) for folder, name in document.get("folders", {}).items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"The prompt suite {path} cannot be read ({error!r}). Install the application again."
        ) from error
