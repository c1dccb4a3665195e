import re
from collections import Counter
from pathlib import Path

import pytest

from trainer import config
from trainer.data.dataset_index import listing
from trainer.data.pairs import DataError, Source
from trainer.data.query_balance import balanced, read_queries
from trainer.data.splits import parts_of

CAPTIONS = ["a red car"] * 6 + ["a blue car", "a Red boat", "a green boat", "fog"]


def pairs(captions: list[str]) -> list[Source]:
    return [Source(Path(f"{n}.png"), f"{n}.png", caption) for n, caption in enumerate(captions)]


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_a_pair_stays_for_its_rarest_query(most: int):
    left = balanced(pairs(CAPTIONS), most, None)
    counts = Counter(word for source in left.sources for word in set(source.caption.lower().split()))
    every = Counter(word for caption in CAPTIONS for word in set(caption.lower().split()))
    assert all(counts[word] >= min(most, n) for word, n in every.items()), "no query has fewer than it may have"
    assert {"a blue car", "a Red boat", "a green boat", "fog"} <= {source.caption for source in left.sources}
    assert left.full == sum(n > most for n in every.values())
    assert len(left.sources) == len(CAPTIONS) or most < 7


def test_only_listed_queries_count_and_they_may_have_several_words():
    left = balanced(pairs(CAPTIONS), 2, ["Red car", "boat", "red  CAR", "zeppelin"])
    found = Counter(source.caption for source in left.sources)
    assert found == {"a red car": 2, "a Red boat": 1, "a green boat": 1}
    assert (left.pairs, left.queries, left.full, left.unmatched) == (10, 2, 1, 2)
    assert left.sentence.startswith("Balanced by queries: 4 of 10 training pairs are used; 1 of 2 queries have more")
    alone = {source.relative for source in left.sources}
    more = balanced(pairs([*CAPTIONS, "fog", "a tree"]), 2, ["red car", "boat"])
    assert {source.relative for source in more.sources} == alone, "others that come change nothing"


def test_training_pairs_of_a_table_are_balanced_and_held_out_ones_are_not(tmp_path: Path):
    rows = [f"{n}.png,{caption},{'val' if n in (0, 7) else 'train'}" for n, caption in enumerate(CAPTIONS)]
    (tmp_path / "pairs.csv").write_text("\n".join(["filepath,title,split", *rows]))
    for n in range(len(CAPTIONS)):
        (tmp_path / f"{n}.png").touch()
    (tmp_path / "queries.txt").write_text("car\n\nboat\n")
    data = config.Table(path=str(tmp_path / "pairs.csv"), most_per_query=3, queries=str(tmp_path / "queries.txt"))
    listed = listing(data, tmp_path, lambda share, note: None)
    parts = parts_of(data, listed)
    assert parts_of(data, listed) == parts
    assert len(parts["train"]) == 4
    assert sum(len(sources) for split, sources in parts.items() if split != "train") == 2
    assert [note for note in listed.log.notes if note.startswith("Balanced")] == [
        "Balanced by queries: 4 of 8 training pairs are used; 1 of 2 queries have more pairs than are taken; "
        "1 pair without any left out."
    ]


@pytest.mark.parametrize(("content", "says"), [
    (b"", "is empty"), (b"\xff\xfe\x00", "cannot be read"), (b"a b c d e f g h i", "more than 8 words"),
    (None, "cannot be read"),
])  # fmt: skip
def test_a_list_that_is_none_is_a_sentence(tmp_path: Path, content: bytes | None, says: str):
    path = tmp_path / "queries.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(says)):
        read_queries(str(path))
