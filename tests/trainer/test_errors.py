"""An error is told by its cause and the next step, whoever raised it; the words of Python stay in the details."""

import errno
from pathlib import Path

import pytest

from trainer.errors import BUG, UserError, reason_words
from trainer.messages import Failure
from trainer.server.protocol import _failure


def test_a_missing_file_is_named_with_what_to_do(tmp_path: Path):
    with pytest.raises(FileNotFoundError) as caught:
        (tmp_path / "items.parquet").read_bytes()
    words = f"{tmp_path / 'items.parquet'} is missing. Put it back, or choose other data; then retry."
    assert reason_words(caught.value) == words
    assert _failure(caught.value) == Failure("unreadable", words)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UserError("The table is empty. Choose another."), "The table is empty. Choose another."),
        (PermissionError(errno.EACCES, "Permission denied", "a.npy"), "a.npy may not be read or written."),
        (OSError(errno.EIO, "Input/output error", "a.npy"), "a.npy cannot be read or written: Input/output error."),
        (MemoryError(), "There is not enough memory for this."),
        (OSError("a text of a library"), BUG),
        (ValueError("invalid literal for int()"), BUG),
    ],
)
def test_no_text_of_python_is_among_the_words(error: Exception, words: str):
    assert reason_words(error).startswith(words)


def test_the_text_of_a_bug_is_no_sentence_for_a_person():
    assert Failure("bug", "IndexError: list index out of range", "Ask again.").words == BUG
    assert Failure("memory", "There is no memory.", "Try fewer.").words == "There is no memory. Try fewer."
