"""Sentences of classes: what captions were made by, and labels taken from captions."""

import numpy as np
import pytest

from trainer.analysis.class_prompts import MOST_WORDS, caption_labels, captioned, learned_templates, named_in_captions

CLASSES = ("cat", "owl", "jeans", "airplane", "sea lion", "hourglass")


@pytest.mark.parametrize("template", ["a photo of a(n) {}.", "{}", "an image showing a {} outdoors", "{} (satellite)"])
def test_the_template_of_captions_is_found_again(template: str) -> None:
    labels = [*CLASSES] * 4
    captions = [captioned(template, label) for label in labels]
    assert learned_templates(captions, labels) == (template,)
    assert learned_templates(captions, labels, stated=template) == (template,)


def test_captions_of_several_templates_are_asked_by_all_of_them() -> None:
    rng = np.random.default_rng(0)
    templates = ("a photo of a {}.", "itap of a {}.", "a {} in a video game.", "the {}.")
    labels = [CLASSES[place] for place in rng.integers(len(CLASSES), size=400)]
    captions = [templates[place].replace("{}", label) for place, label in zip(rng.integers(4, size=400), labels)]
    assert {*learned_templates(captions, labels)} == {*templates}


def test_free_captions_have_no_template() -> None:
    """Neither where each is another sentence with its class, nor where only one class is worded so."""
    labels = [*CLASSES] * 30
    assert learned_templates([f"my {label} on day {day}" for day, label in enumerate(labels)], labels) == ()
    assert learned_templates(["a fine cat"] * 40, ["cat"] * 40) == ()
    # A class inside of another word is not its name.
    assert learned_templates([f"a {label}ly thing" for label in labels], labels, stated="a {}.") == ()
    assert learned_templates(["a cat"], [""]) == learned_templates([], []) == ()


def test_names_in_one_sentence_are_found_with_it() -> None:
    names = ("dress", "outwear", "pair of pants", "shorts", "t-shirt")
    for template in ("a photo of a(n) {}", "an image of a(n) {} on a hanger."):
        captions = [captioned(template, name).replace("a pair", "a  pair") for name in names]
        assert named_in_captions(captions * 3) == (names, (template,))
        assert named_in_captions([*captions, captions[3]])[0] == (
            "shorts",
            "dress",
            "outwear",
            "pair of pants",
            "t-shirt",
        )
    for free in (["a cat", "two dogs"], ["a cat on a mat", "a dog asleep in the warm sun"], ["a cat"], []):
        assert named_in_captions(free) == ((), ())


def test_a_few_names_are_the_labels_and_of_sentences_the_words_that_tell_them_apart() -> None:
    assert caption_labels(["a cat", "asleep  dog", "asleep dog"]) == ("asleep dog", "a cat")
    assert caption_labels(["a cat"] * 9) == caption_labels(["a cat lies on a mat"] * 9) == caption_labels([]) == ()
    assert caption_labels(["a photo of a cat.", "a photo of a dog."]) == ("cat", "dog")
    shapes, colors = ("circle", "square", "star"), ("red", "blue", "green", "teal", "pink")
    many = [f"a {color} {shape} on grass {i}" for i in range(4) for color in colors for shape in shapes]
    # grass is in all of them; each shape is in 20 and each color in 12. Few sentences are no labels either.
    for captions in (many, many[:15]):
        assert caption_labels(captions) == ("circle", "square", "star", "red", "blue", "green", "teal", "pink")
    # No training caption has other words, and those of most training captions come first.
    assert caption_labels(many, {"green": 1, "blue-green": 2, "circle": 1}) == ("circle", "green", "blue")
    few = ["clock: a time, tower", "boat: the sea, travel", "zebra: an animal, stripe"]
    counts = {"animal": 5, "travel": 3, "sea": 3, "zebra": 1, "boat": 1, "clock": 1}
    assert caption_labels(few, counts) == ("animal", "sea", "travel", "clock", "boat", "zebra")
    names = ("clock", "boat", "zebra")
    assert caption_labels(few) == (*names, "time", "sea", "animal", "tower", "travel", "stripe"), "one of each at first"
    # Captions without a word in common are labels as they stand, as many as can be read.
    unlike = [f"{place:03}" for place in range(100)]
    assert len(caption_labels(unlike)) == MOST_WORDS
    assert {*caption_labels(unlike)} < {*unlike}
