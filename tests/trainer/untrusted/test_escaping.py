"""Texts for Markdown are shown literally, mention nobody and link nowhere."""

import re

import pytest

from trainer.untrusted.escaping import markdown


@pytest.mark.parametrize(
    "text", ["@octocat", "see #12", "https://a.example/b", "www.example.org", "costs $x$", "a@b.c"]
)
def test_github_makes_nothing_of_it(text: str) -> None:
    escaped = markdown(text)
    assert not re.search(r"(?<!\w)[@#]\w|@\w+\.|://|www\.|(?<!\\)\$", escaped)
    assert re.sub("[\u200b\\\\]", "", escaped) == text


def test_plain_texts_stay() -> None:
    for text in ("a red square, left: 3/4 (5 %)", "Image to text R@1, n = 6"):
        assert markdown(text) == text
