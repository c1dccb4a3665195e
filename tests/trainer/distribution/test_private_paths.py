"""What is given away tells no path of the user, and changes no text that is none."""

from pathlib import PurePosixPath

import pytest

from trainer.distribution.private_paths import PrivatePaths

SHORTEN = PrivatePaths([PurePosixPath("/home/ada/data"), PurePosixPath("/")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/data/photos/dogs/1.png", "photos/dogs/1.png"),
        ("/home/ada/My Pictures/1 2.png", "1 2.png"),
        ("~/secret/run", "run"),
        ("~ada/secret/run", "run"),
        (r"C:\Users\ada\photos", "photos"),
        (r"\\server\ada\photos", "photos"),
        ("photos/dogs/1.png", "photos/dogs/1.png"),
        ("a dog / a cat", "a dog / a cat"),
        ("and/or", "and/or"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("", ""),
        ("/", "/"),
    ],
)
def test_a_value(text: str, expected: str) -> None:
    assert SHORTEN.value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--data=/home/ada/x/photos --seed 1", "--data=photos --seed 1"),
        ("it cannot read '/home/ada/x/1.png': no", "it cannot read '1.png': no"),
        ("/usr/bin/python -m trainer fit /home/ada/data/photos", "python -m trainer fit photos"),
        ("see https://example.org/a and ssh://box/usr/bin/python3", "see https://example.org/a and ssh://box/usr/bin/python3"),
        ("3 pairs/s, 1 / 2", "3 pairs/s, 1 / 2"),
    ],
)  # fmt: skip
def test_a_sentence(text: str, expected: str) -> None:
    assert SHORTEN.sentence(text) == expected


def test_a_document() -> None:
    document = {"a": ["/home/ada/x", 1, None, {"b": "/home/ada/data/y/z"}], "c": True}
    assert SHORTEN.document(document) == {"a": ["x", 1, None, {"b": "y/z"}], "c": True}
