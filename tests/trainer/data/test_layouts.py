"""Layouts drawn from a seed are read as their own tools read them: `datasets`, torchvision, webdataset and Pillow."""

import csv
import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.builders import add_members
from tests.nightly import nightly_except
from trainer.data import DataError, DataSplits, load
from trainer.format_detection import propose

SIDE = 8
KEYWORDS = {
    "train": ("train", "training"),
    "test": ("test", "testing", "eval", "evaluation"),
    "validation": ("validation", "valid", "val", "dev"),
}
PARTS = ((), ("train", "test"), ("train", "validation"), ("train", "validation", "test"), ("train",))
NAMES = ("plain", "two words", "Größe", "a.b", "100%", "x#1", "latest", "devil", "contrail", "ctrl-é", "[v1] {a,b}")
"""No keyword stands alone in them, as `datasets` understands it."""
CLASSES = ("owl", "red fox", "Käfer", "latest model")

Pair = tuple[str, bytes]
"""Caption or class, and pixels."""
Parts = dict[str, Counter[Pair]]


@dataclass
class Layout:
    """Files below a root, and what their own tools read from them.

    Attributes:
        peer: Part -> pairs; of a split that nothing states `train` alone.
        surplus: Images that are found and are no pair of the peer's: further images of a sample of a tar.
        labels: Whether the first of a pair is its class.
    """

    root: Path
    rng: np.random.Generator
    peer: Parts = field(default_factory=dict)
    surplus: int = 0
    labels: bool = False
    number: int = 0

    def one_of(self, *choices: object) -> object:
        return choices[int(self.rng.integers(len(choices)))]

    def picture(self) -> bytes:
        """Return the next PNG, of pixels that no other has."""
        self.number += 1
        pixels = self.rng.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        pixels[0, 0] = self.number % 256, self.number // 256, 0
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG")
        return buffer.getvalue()

    def caption(self) -> str:
        return f"{self.one_of('a red', 'ein großer', 'the last', 'train of')} thing, number {self.number}"

    def stem(self) -> str:
        return f"{self.one_of(*NAMES)}_{self.number}x"

    def parts(self) -> tuple[str, ...]:
        return PARTS[int(self.rng.integers(len(PARTS)))]

    def keyword(self, part: str) -> str:
        return str(self.one_of(*KEYWORDS[part]))

    def folder_of(self, part: str) -> str:
        word = self.keyword(part)
        return str(self.one_of(word, word, f"{word}_images", f"my-{word}", f"{word}2017"))

    def write(self, name: str, content: bytes | str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path


def pixels(content: bytes) -> bytes:
    with Image.open(io.BytesIO(content)) as image:
        return image.convert("RGB").tobytes()


def placed(layout: Layout, levels: tuple[str, ...] = ("folders", "files")) -> Iterator[tuple[str, str, str]]:
    """Yield (part as drawn, folder with a slash or empty, name without ending) of each picture."""
    drawn = layout.parts()
    level = layout.one_of(*levels)
    above = str(layout.one_of("", "", "inner/"))
    words = {part: layout.keyword(part) for part in drawn}
    folders = {part: layout.folder_of(part) for part in drawn}
    for part in drawn or ("",):
        deep = str(layout.one_of("", "deep/"))
        for _ in range(5):
            layout.number += 1
            stem = layout.stem()
            if part and level == "folders":
                yield part, f"{above}{folders[part]}/{deep}", stem
            else:
                yield part, above, f"{words[part]}_{stem}" if part else stem


def split_by_peer(layout: Layout, files: Iterable[Path]) -> dict[str, list[Path]]:
    """Return part -> files as `datasets` finds them."""
    from datasets.data_files import DataFilesDict, get_data_patterns

    try:
        patterns = get_data_patterns(str(layout.root))
    except FileNotFoundError:
        return {"train": list(files)}
    found = DataFilesDict.from_local_or_remote(patterns, base_path=str(layout.root))
    every = set(files)
    return {str(part): [Path(name) for name in names if Path(name) in every] for part, names in found.items()}


# -- kinds of layouts --------------------------------------------------------------------------------------------------


def texts(layout: Layout) -> None:
    """Pictures with .txt or .caption beside them."""
    captions: dict[Path, str] = {}
    ending = str(layout.one_of(".txt", ".caption"))
    for _, folder, stem in placed(layout):
        image = layout.write(f"{folder}{stem}{layout.one_of('.png', '.PNG')}", layout.picture())
        captions[image] = layout.caption()
        image.with_suffix(ending).write_text(captions[image], encoding="utf-8")
    layout.write(".hidden.png", layout.picture())
    layout.write("notes.docx", b"PK")
    by_part = split_by_peer(layout, captions)
    layout.peer = {p: Counter((captions[f], pixels(f.read_bytes())) for f in files) for p, files in by_part.items()}


def class_folders(layout: Layout) -> None:
    """A folder for each class, some of them links, in folders of parts; read by torchvision."""
    from torchvision.datasets import ImageFolder

    drawn = layout.parts()
    roots = {part: f"{layout.folder_of(part)}/" for part in drawn} or {"train": ""}
    for part, above in roots.items():
        for place, name in enumerate(CLASSES):
            linked = layout.one_of(True, False)
            inner = str(layout.one_of("", "deep/"))
            target = f"../store-{layout.root.name}/{part}{place}/" if linked else f"{above}{name}/"
            for _ in range(3):
                layout.number += 1
                layout.write(f"{target}{inner}{layout.number}.png", layout.picture())
            if linked:
                (layout.root / above).mkdir(parents=True, exist_ok=True)
                (layout.root / above / name).symlink_to((layout.root / target).resolve())
    layout.labels = True
    for part, above in roots.items():
        seen = ImageFolder(str(layout.root / above))
        pairs = ((seen.classes[kind], pixels(Path(file).read_bytes())) for file, kind in seen.samples)
        layout.peer[part] = Counter(pairs)


def metadata(layout: Layout) -> None:
    """`metadata.jsonl` or `.csv` of an image folder, above the parts or in each; read by `load_dataset`."""
    import datasets

    column = str(layout.one_of("text", "caption", "title", "additional_feature"))
    rows: dict[str, list[dict[str, str]]] = {}
    inside = layout.one_of(True, False)
    for _, folder, stem in placed(layout):
        at = folder.split("/")[0] + "/" if inside and folder else ""
        layout.write(f"{folder}{stem}.png", layout.picture())
        row = {"file_name": f"{folder}{stem}.png".removeprefix(at), column: layout.caption()}
        rows.setdefault(at, []).append(row)
    form = layout.one_of("jsonl", "csv")
    for at, found in rows.items():
        layout.write(f"{at}metadata.{form}", as_csv(found) if form == "csv" else as_lines(found))
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(layout.root), cache_dir=str(layout.root.parent / "cache")
    )
    # It splits pictures whose captions lie above their parts, and then finds no captions (datasets#4548).
    said = {at + row["file_name"]: row[column] for at, found in rows.items() for row in found}
    for part, table in loaded.items():
        files = [Path(row["image"]["path"]) for row in table.cast_column("image", datasets.Image(decode=False))]
        own = [said[file.relative_to(layout.root).as_posix()] for file in files]
        words = [*table[column]] if column in table.column_names else own
        layout.peer[str(part)] = Counter(zip(words, (pixels(file.read_bytes()) for file in files), strict=True))


def tables(layout: Layout) -> None:
    """Pictures in one folder, and a table for each part beside it; parts of tables are those of their names."""
    drawn = layout.parts()
    form = str(layout.one_of("csv", "tsv", "jsonl"))
    shape = str(layout.one_of("{}", "{}_pairs", "pairs-{}", "captions.{}"))
    files: dict[Path, Counter[Pair]] = {}
    for part in drawn or ("",):
        rows = []
        for _ in range(4):
            content = layout.picture()
            name = f"images/{layout.stem()}.png"
            layout.write(name, content)
            rows.append({"image": name, "caption": layout.caption()})
        text = as_lines(rows) if form == "jsonl" else as_csv(rows, "\t" if form == "tsv" else ",")
        name = shape.format(layout.keyword(part)) if part else "pairs"
        file = layout.write(f"{name}.{form}", text)
        contents = [(row["caption"], pixels((layout.root / row["image"]).read_bytes())) for row in rows]
        files[file] = Counter(contents)
    layout.peer = {part: sum((files[file] for file in found), Counter()) for part, found in by_tables(layout, files)}


def by_tables(layout: Layout, files: Iterable[Path]) -> list[tuple[str, list[Path]]]:
    return [(part, found) for part, found in split_by_peer(layout, files).items() if found]


def parquet(layout: Layout) -> None:
    """Shards of Parquet that hold the pictures, as on the hub; read by `load_dataset`."""
    import datasets

    where = str(layout.one_of("data/", "", "data/{}/"))
    drawn = layout.parts()
    for part in drawn or ("",):
        word = layout.keyword(part) if part else "pairs"
        shards = int(layout.one_of(1, 2))
        for shard in range(shards):
            contents = [layout.picture() for _ in range(3)]
            words = [f"{layout.caption()} {shard} {n}" for n in range(3)]
            images = [{"bytes": content, "path": f"{n}.png"} for n, content in enumerate(contents)]
            path = layout.write(f"{where.format(word)}{word}-{shard:05d}-of-{shards:05d}.parquet", b"")
            pq.write_table(pa.table({"image": images, "text": words}), path)
    cache = str(layout.root.parent / "cache")
    loaded = datasets.load_dataset("parquet", data_dir=str(layout.root), cache_dir=cache)
    named = {word: part for part, words in KEYWORDS.items() for word in words}
    for word, table in loaded.items():
        # Shards in a folder `data` are called by their word, others by the part that it names.
        part = named.get(str(word), str(word))
        layout.peer[part] = Counter((row["text"], pixels(row["image"]["bytes"])) for row in table)


def tars(layout: Layout) -> None:
    """Tars whose samples webdataset groups, with dots in names, several images and endings in capitals."""
    from webdataset.tariterators import group_by_keys, tar_file_iterator

    drawn = layout.parts()
    where = layout.one_of("names", "folders")
    files: list[Path] = []
    for part in drawn or ("",):
        word = layout.keyword(part) if part else "shard"
        for shard in range(2):
            name = f"{word}/{shard:04d}.tar" if where == "folders" and part else f"cc-{word}-{shard:04d}.tar"
            files.append(layout.root / name)
            layout.write(name, tar_of(layout))
    layout.surplus = 0
    for part, found in by_tables(layout, files):
        pairs: list[Pair] = []
        for file in found:
            with file.open("rb") as stream:
                members = ({**one, "__url__": file.name} for one in tar_file_iterator(stream))
                for sample in group_by_keys(members):
                    pairs += sample_pairs(layout, sample)
        layout.peer[part] = Counter(pairs)


def tar_of(layout: Layout) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for _ in range(3):
            layout.number += 1
            key = f"{layout.one_of('', 'a/', 'v1.2/', './')}{layout.stem()}"
            upper = layout.one_of(True, False)
            several = layout.one_of((".png",), (".png",), (".left.png", ".right.png"))
            words = layout.caption()
            text = layout.one_of((".txt", words), (".json", json.dumps({"caption": words})))
            for ending, content in [*((e, layout.picture()) for e in several), text, (".extra.npy", b"x")]:
                raw = content.encode() if isinstance(content, str) else content
                add_members(archive, [(f"{key}{ending.upper() if upper else ending}", raw)])
    return buffer.getvalue()


def sample_pairs(layout: Layout, sample: dict[str, bytes]) -> list[Pair]:
    """Return the pair of a sample: of several images the first is one, and the others are counted."""
    images = [raw for name, raw in sample.items() if name.endswith("png")]
    (text,) = (raw for name, raw in sample.items() if name.endswith(("txt", "json")))
    layout.surplus += len(images) - 1
    words = json.loads(text)["caption"] if text.startswith(b"{") else text.decode()
    return [(words, pixels(images[0]))]


def as_csv(rows: list[dict[str, str]], separator: str = ",") -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [*rows[0]], delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def as_lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


KINDS: dict[str, Callable[[Layout], None]] = {
    "texts": texts,
    "class_folders": class_folders,
    "metadata": metadata,
    "tables": tables,
    "parquet": parquet,
    "tars": tars,
}


# -- what is compared --------------------------------------------------------------------------------------------------


def read(layout: Layout, workspace: Path) -> DataSplits:
    data = propose(layout.root).data
    return load(data, image_size=SIDE, workspace_folder=workspace, progress=lambda share, note: None)


def pairs_of(layout: Layout, part) -> Counter[Pair]:
    words = part.labels if layout.labels else part.captions
    return Counter((text, image.tobytes()) for text, image in zip(words, np.asarray(part.images), strict=True))


def differences(layout: Layout, workspace: Path) -> list[str]:
    """Return how what is read differs from the peer's reading, in words."""
    everything = sum(layout.peer.values(), Counter())
    try:
        splits = read(layout, workspace)
    except DataError as error:
        return [f"refused: {error}"]
    train, heldout = pairs_of(layout, splits.train), pairs_of(layout, splits.heldout["heldout"])
    wrong = []
    held = next((part for part in ("test", "validation") if layout.peer.get(part)), "")
    if layout.peer.get("train") and held:
        wanted = {"train": layout.peer["train"], held: layout.peer[held]}
        for part, pairs in (("train", train), (held, heldout)):
            if pairs != wanted[part]:
                wrong.append(
                    f"{part}: {pairs.total()} for {wanted[part].total()}, {(pairs - wanted[part]).total()} odd"
                )
        if "state" not in splits.report.split:
            wrong.append(f"not told: {splits.report.split!r}")
        unused = everything.total() - sum(one.total() for one in wanted.values()) + layout.surplus
    else:
        if train + heldout != everything:
            wrong.append(f"all: {(train + heldout).total()} for {everything.total()}")
        if "No split is stated" not in splits.report.split:
            wrong.append(f"told: {splits.report.split!r}")
        unused = layout.surplus
    report = splits.report
    # A tar of another part is counted as one.
    if "tar" not in layout.root.name and (count := len(report.problems) + len(report.other_parts)) != unused:
        wrong.append(f"not used: {count} for {unused}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("seeds", nightly_except([range(2), *(range(n, n + 10) for n in range(2, 82, 10))], range(2)))
@pytest.mark.parametrize("kind", KINDS)
def test_a_layout_is_read_as_its_own_tools_read_it(
    kind: str, seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wrong = {}
    for seed in seeds:
        layout = Layout(tmp_path / f"{kind}-{seed}", np.random.default_rng([seed, len(kind)]))
        layout.root.mkdir()
        KINDS[kind](layout)
        if found := differences(layout, tmp_path / "workspace"):
            wrong[seed] = found, sorted(path.relative_to(layout.root).as_posix() for path in layout.root.rglob("*"))[:9]
    assert not wrong
