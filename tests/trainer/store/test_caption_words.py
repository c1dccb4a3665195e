"""The words of training captions: counted by captions, and what none holds."""

from pathlib import Path

from trainer.store import caption_words
from trainer.store.caption_words import read_caption_words, unseen_sentences, words_in, write_caption_words

CAPTIONS = ["A red circle, a RED square", "a red circle, a RED square", "don't stop", "Überführung des Kreises"]


def test_a_word_is_counted_once_for_each_caption(tmp_path: Path):
    write_caption_words(tmp_path, CAPTIONS)
    words = read_caption_words(tmp_path)
    assert words is not None
    assert words.captions == 4
    assert {word: words.counts[word] for word in ("red", "don't", "überführung")} == {
        word: sum(word in caption.casefold() for caption in CAPTIONS) for word in ("red", "don't", "überführung")
    }
    assert words.unseen("a photo of a red TENT") == ("photo", "of", "tent")
    assert words_in("a photo of a(n) {}.") == ["a", "photo", "of"]


def test_a_later_session_leaves_the_first_count(tmp_path: Path):
    write_caption_words(tmp_path, CAPTIONS)
    write_caption_words(tmp_path, ["other"])
    assert read_caption_words(tmp_path).captions == 4


def test_nothing_is_said_of_captions_that_were_not_counted(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(caption_words, "MOST_CAPTIONS", 3)
    write_caption_words(tmp_path, CAPTIONS)
    assert read_caption_words(tmp_path) is None
    for text in ("", "[]", '{"captions": 3}', '{"captions": "x", "counts": {}}', '{"captions": 1, "counts": [1]}'):
        (tmp_path / caption_words.FILE).write_text(text, encoding="utf-8")
        assert read_caption_words(tmp_path) is None
    assert unseen_sentences(["CLIP"], [None], ["tent"]) == []


def test_a_sentence_names_run_words_and_count(tmp_path: Path):
    write_caption_words(tmp_path, CAPTIONS)
    words = read_caption_words(tmp_path)
    assert unseen_sentences(["CLIP", "CLOOB"], [words, words], ["tent"]) == [
        "CLIP, CLOOB: 0 of 4 training captions contain tent."
    ]
    assert unseen_sentences(["CLIP", "CLOOB"], [words, None], ["red", "tent", "a tent", "box"]) == [
        "CLIP: 0 of 4 training captions contain tent, box."
    ]
