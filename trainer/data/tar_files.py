"""A WebDataset tar reader that neither unpacks files nor runs commands or pickles.

WebDataset's own reader (https://github.com/webdataset/webdataset) runs `pipe:` addresses as commands and unpickles
members by their ending. Here a member is an image, a text, a class or a JSON object, or is passed over.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from trainer import config
from trainer.data.atomic_folder import written_once
from trainer.data.folder import CaptionLines
from trainer.data.kept_listing import Listing, listed_once
from trainer.data.pairs import DataError, ImportLog, Source, captioned
from trainer.data.split_lists import not_in_use, stated_sentence
from trainer.data.table_formats import encoding_for
from trainer.format_detection import encoding_of_lines
from trainer.format_detection.encodings import NAMES
from trainer.format_detection.proposal import TARS, tar_folders
from trainer.format_detection.splits import part_of, stated_split
from trainer.images import NOT_READ, SUFFIXES, Member, not_read
from trainer.store import derived
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import wide_encoding

MOST_SHARDS: Final = 100_000
MOST_TEXT: Final = 100_000
"""Bytes of a caption or a JSON object; a longer one is no caption."""
CAPTION_KEYS: Final = ("caption", "text", "title", "txt")
"""Where a JSON member keeps the caption, tried in this order."""

LISTED_KEYS: Final = ("captions", "caption", "texts", "text", "sentences")
"""Where it lists several; the first that is there counts."""

_MOST_HEADER: Final = 1 << 20
"""Bytes of a header or a name in a tar."""
_MOST_RATIO: Final = 100
"""Times its size to which a compressed tar may unfold; images hardly shrink."""
_LEAST_UNPACKED: Final = 64 << 20
"""Bytes to which any may."""

_MOST_LINES: Final = 2_000
"""Lines of a tar's texts that are looked at for their encoding."""

_TEXT_KINDS: Final = ("txt", "text", "caption", "json", "cls")
_CAPTION_KINDS: Final = ("txt", "text", "caption")
_KEY: Final = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]*)", re.DOTALL)
"""WebDataset's rule: the key ends at the first dot of the file name, and hidden files have none."""
_META: Final = re.compile(r"__[^/]*__($|/)")
"""Members that WebDataset leaves out."""
_MOST_ENDINGS: Final = 20

_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)")

Problems = list[tuple[str, str]]


def shard_sources(
    data: config.Shards, workspace_folder: Path, progress: Callable[[float, str], None], log: ImportLog | None = None
) -> tuple[dict[str, Sequence[Source]], Problems]:
    """Return the pairs of each split in tar order; only "train" without known held-out tars.

    Args:
        workspace_folder: Compressed tars are decompressed into its cache, once.
        progress: Told how many tars have been listed.
        log: Receives a note for each encoding but UTF-8 in which texts are read.

    Raises:
        DataError: No tar of a split can be read, or there is no pair in them.
    """
    sources: dict[str, Sequence[Source]] = {}
    problems: Problems = []
    log = ImportLog() if log is None else log
    splits, left_out = _splits(data, log)
    for split, tars in splits.items():
        sources[split], more = _of_split(tars, data, workspace_folder, progress, log)
        problems += more
    return sources, problems + left_out


def expand(pattern: str) -> list[str]:
    """Expand a pattern to names: `{000..150}` counts, `{a,b}` lists, `::` joins patterns.

    Raises:
        DataError: It is an address or a command, or stands for more names than any data set has.
    """
    names: list[str] = []
    for part in pattern.split("::"):
        if "://" in part or part.strip().startswith("pipe:"):
            raise DataError(f"{part} is an address or a command; only tars on this machine are read. Download them.")
        literal, rest = _literal(part.strip())
        every = (f"{literal}{name}" for name in _expanded(rest))
        names += itertools.islice(every, MOST_SHARDS + 1 - len(names))
    if len(names) > MOST_SHARDS:
        raise DataError(f"{pattern} expands to more than {MOST_SHARDS:,} tars. Check the numbers in its braces.")
    return names


def _literal(pattern: str) -> tuple[str, str]:
    """Return the beginning of a pattern that exists as it is written, braces and all, and the rest."""
    parts = re.split(r"(?<=/)", pattern.replace(os.sep, "/"))
    for count in range(len(parts), 0, -1):
        literal = "".join(parts[:count])
        if _BRACES.search(literal) and untrusted_files.expanded(literal).exists():
            return literal, "".join(parts[count:])
    return "", pattern


def _expanded(pattern: str) -> Iterator[str]:
    """Yield the names one by one, so that a mistyped range does not fill the memory."""
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    if counted := _RANGE.fullmatch(braces[1]):
        first, last = counted.groups()
        width = len(first) if first.startswith("0") else 0
        choices: Iterator[str] = (f"{n:0{width}}" for n in range(int(first), int(last) + 1))
    else:
        choices = iter(braces[1].split(","))
    for choice in choices:
        yield from _expanded(f"{before}{choice}{after}")


def _splits(data: config.Shards, log: ImportLog) -> tuple[dict[str, list[Path]], Problems]:
    """Return split -> its tars, by the names of tars and their folders, and (tar, why) of those in no split."""
    if data.heldout_path.strip():
        log.split = f"data.heldout_path names what is held out: {Path(data.heldout_path).name}."
        return {"train": [*_tars(data.path).values()], "heldout": [*_tars(data.heldout_path).values()]}, []
    tars = _tars(data.path)
    stated = stated_split([*tars])
    folders = sorted({name.rpartition("/")[0] for name in tars})
    if stated is None and len(folders) > 1:
        few = ", ".join(map(untrusted_files.spelled, folders[:4]))
        log.notes.append(f"The tars of {len(folders):,} folders are read as one data set: {few}.")
    if stated is None or data.split_from == "share":
        return {"train": [*tars.values()]}, []
    log.split = stated_sentence(stated)
    used = {"train": "train", "heldout": stated.heldout}
    splits = {
        split: [tar for name, tar in tars.items() if stated.parts.get(name) == part] for split, part in used.items()
    }
    return splits, not_in_use(stated, tars, log)


def _tars(pattern: str) -> dict[str, Path]:
    """Return the tars of a folder, and of its folders that are parts of a split, or of a pattern: name -> path."""
    root = untrusted_files.expanded(pattern)
    if not root.is_dir():
        paths = [untrusted_files.expanded(name) for name in expand(pattern)]
        above = os.path.commonpath([path.parent for path in paths]) if len(paths) > 1 else paths[0].parent
        return {path.relative_to(above).as_posix(): path for path in paths}
    inner = [at for at in sorted(root.iterdir()) if part_of(at.name) and at.is_dir()]
    tars = [tar for folder in (root, *inner) for tar in _tars_in(folder)]
    tars = tars or [tar for folder in tar_folders(root) for tar in _tars_in(folder)]
    return {tar.relative_to(root).as_posix(): tar for tar in tars}


def _tars_in(folder: Path) -> list[Path]:
    tars = (path for path in folder.iterdir() if path.name.lower().endswith(TARS) and not path.name.startswith("."))
    return sorted(tars, key=lambda path: [int(part) if part.isdecimal() else part for part in _digits(path.name)])


def _digits(name: str) -> list[str]:
    return re.split(r"(\d+)", name)


def _of_split(
    tars: list[Path],
    data: config.Shards,
    workspace_folder: Path,
    progress: Callable[[float, str], None],
    log: ImportLog,
) -> tuple[Sequence[Source], Problems]:
    if not tars:
        raise DataError(f"There is no tar in {data.path}. Choose a folder of .tar files, or their names.")
    names = _class_names(tars[0].parent, data.encoding, log)
    settings = repr((data.template, names, data.encoding, data.lines))
    found, problems, notes = listed_once(
        tars, settings, workspace_folder, lambda: _list(tars, names, data, workspace_folder, progress)
    )
    if not found:
        first = f" The first problem: {problems[0][0]}: {problems[0][1]}" if problems else ""
        raise DataError(f"{data.path} has no pair of an image and a text or class.{first}", problems)
    log.notes += notes
    return found, problems


def _list(
    tars: list[Path],
    names: list[str],
    data: config.Shards,
    workspace_folder: Path,
    progress: Callable[[float, str], None],
) -> Listing:
    taken = _Taken(data, names)
    for number, tar in enumerate(tars):
        progress(number / len(tars), f"Listing tars: {number:,} of {len(tars):,}")
        try:
            untrusted_files.check_ordinary(tar)
            readable = _decompressed(tar, workspace_folder) if tar.name.endswith(("gz",)) else tar
            for sample in _samples(readable, tar.name, taken.problems, taken.skipped):
                taken.take(sample, tar.name)
        except (OSError, EOFError, tarfile.TarError) as error:
            taken.problems.append((tar.name, _why(tar, error)))
        taken.end_tar(tar.name)
    return taken.found, taken.problems, taken.notes()


@dataclass
class _Sample:
    """Members of one tar that share a key: `a.jpg`, `a.left.jpg` and `a.left.txt` have `a`."""

    key: str
    # What stands between key and ending, as `left` -> image; empty for `a.jpg`.
    images: dict[str, Member] = field(default_factory=dict)
    texts: dict[tuple[str, str], bytes] = field(default_factory=dict)  # (what stands between, ending) -> content.
    again: list[str] = field(default_factory=list)  # Names of further members of one name.
    not_read: Problems = field(default_factory=list)  # (name of an image that is not read, why).

    def texts_of(self, between: str) -> dict[str, bytes]:
        """Return ending -> the text of an image: its own, else that of the key, else the only one."""
        texts: dict[str, bytes] = {}
        present = {ending for _, ending in self.texts}
        for kind in filter(present.__contains__, _TEXT_KINDS):
            every = {other: raw for (other, ending), raw in self.texts.items() if ending == kind}
            only = [raw for other, raw in every.items() if other not in self.images]
            raw = every.get(between, every.get("", only[0] if len(only) == 1 else None))
            if raw is not None:
                texts[kind] = raw
        return texts

    def chosen(self) -> list[str]:
        """Return the images that are pairs: those with a text of their own, else that of the key, else the first."""
        if len(self.images) < 2:  # what follows is a tenth of the time of a listing
            return [*self.images]
        captioned = [name for name in self.images if any((name, kind) in self.texts for kind in _TEXT_KINDS)]
        return captioned or ["" if "" in self.images else next(iter(self.images))]


def _samples(tar: Path, name: str, problems: Problems, skipped: Counter[str]) -> Iterator[_Sample]:
    """Yield consecutive members with one key; a truncated tar gives what it contains, and a problem."""
    sample: _Sample | None = None
    size, end, last = tar.stat().st_size, 0, "the beginning"
    with tar.open("rb") as file:
        try:
            for info in read_members(file):
                if info.size < 0:
                    raise tarfile.ReadError(f"{untrusted_files.spelled(info.name)} has a size below zero")
                end = info.offset_data + info.size
                last = info.name
                if info.isdir():
                    continue
                if not info.isreg() or info.issparse():
                    skipped["links and devices"] += 1
                    continue
                if end > size:
                    raise tarfile.ReadError(f"it ends within {info.name}")
                parts = None if _META.match(info.name) else _KEY.fullmatch(info.name)
                if parts is None:
                    skipped["names without key and ending"] += 1
                    continue
                key, ending = parts[1], parts[2].lower()
                if sample is None or sample.key != key:
                    if sample is not None:
                        yield sample
                    sample = _Sample(key)
                if not _put(sample, ending, info, tar, file):
                    skipped[f".{ending.rpartition('.')[2][:_MOST_ENDINGS]}"] += 1
            # Two empty blocks end a tar; tarfile does not miss them.
            if size - end < 2 * tarfile.BLOCKSIZE:
                raise tarfile.ReadError("its end is missing")
            # Nor does it tell of a damaged header: it takes it for the end, and what follows would be lost unseen.
            file.seek(-(-end // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
            if any(file.read(2 * tarfile.BLOCKSIZE)):
                raise tarfile.ReadError(f"what follows {untrusted_files.spelled(last)} is not a member")
        except tarfile.ReadError as error:
            problems.append((name, f"The tar is damaged or cut short: {error}. What comes before is used."))
    if sample is not None:
        yield sample


def read_members(file: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar: those with plain headers quickly, all from the first other one on as tarfile does."""
    offset = 0
    while (info := _ListedInfo.plain(file.read(tarfile.BLOCKSIZE), tarfile.ENCODING)) is not None:
        info.offset, info.offset_data = offset, offset + tarfile.BLOCKSIZE
        yield info
        offset = info.offset_data - (-info.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        file.seek(offset)
    file.seek(offset)
    with tarfile.open(fileobj=_Sober(file), mode="r:", tarinfo=_ListedInfo) as archive:  # type: ignore[call-overload]
        for info in archive:
            # It would keep what it has read of every member.
            archive.members = []  # type: ignore[attr-defined]
            yield info


class _Sober:
    """A file that limits the size of reads, because a malicious member name may claim gigabytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _MOST_HEADER:
            raise tarfile.ReadError(f"a header or a name in it claims {size:,} bytes")
        return self._file.read(size)


class _ListedInfo(tarfile.TarInfo):
    """A member whose header is read as far as a listing needs it: name, size and kind."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the member of a header as tarfile does, which reads all but plain headers and names damage."""
        return cls.plain(buf, encoding, errors) or super().frombuf(buf, encoding, errors)

    @classmethod
    def plain(cls, buf: bytes | bytearray, encoding: str, errors: str = "surrogateescape") -> Self | None:
        """Return the file of a plain header; None if it is another."""
        # Owner, times and devices take most of the time; zeros change no sum.
        if len(buf) == tarfile.BLOCKSIZE and buf[156:157] == tarfile.REGTYPE and buf[345] == 0:
            with contextlib.suppress(ValueError):
                digits = buf[148:156]
                # Adler's first sum is one more than that of the bytes, modulo 65,521, which 512 of ASCII do not reach.
                total = (zlib.adler32(buf) & 0xFFFF) - 1 if buf.isascii() else sum(buf)
                if _octal(digits) == 256 + total - sum(digits):
                    info = cls(buf[:100].partition(b"\0")[0].decode(encoding, errors))
                    info.size = _octal(buf[124:136])
                    return info
        return None


def _octal(digits: bytes | bytearray) -> int:
    return int(digits.partition(b"\0")[0].strip() or b"0", 8)


def _put(sample: _Sample, ending: str, info: tarfile.TarInfo, tar: Path, opened: BinaryIO) -> bool:
    """Add a member to its sample; return whether it is of a kind that is read."""
    between, _, kind = ending.rpartition(".")
    if f".{kind}" in SUFFIXES:
        if between in sample.images:
            sample.again.append(info.name)
        sample.images.setdefault(between, Member(tar, info.offset_data, info.size, info.name))
    elif kind in _TEXT_KINDS:
        opened.seek(info.offset_data)
        sample.texts[between, kind] = opened.read(min(info.size, MOST_TEXT + 1))
    elif f".{kind}" in NOT_READ and (reason := not_read(f"a.{kind}")):
        sample.not_read.append((info.name, reason))
    else:
        return False
    return True


class _Taken:
    """The pairs of samples, in tar order.

    Texts that are not UTF-8 wait until their tar ends: a caption alone rarely shows its encoding, all of a tar do.

    Attributes:
        found: The pairs of the tars that have ended.
        problems: (sample, why it is not a pair).
        skipped: Ending -> how many members are neither image nor text.
    """

    def __init__(self, data: config.Shards, names: list[str]) -> None:
        """Create an empty list; `names` are those of the classes."""
        self.found: list[Source] = []
        self.problems: Problems = []
        self.skipped: Counter[str] = Counter()
        self._template, self._names, self._encoding = data.template, names, data.encoding
        self._lines = CaptionLines(data.lines)
        self._of_tar: list[Source | _Sample] = []
        self._guessed: dict[str, list[str]] = {}

    def take(self, sample: _Sample, tar: str) -> None:
        """Add the next sample of a tar."""
        chosen = sample.chosen()
        again = "Another member of that name comes before it."
        reasons = [*((name, again) for name in sample.again), *sample.not_read]
        if chosen:
            used = ", ".join(sample.images[between].name for between in chosen[:3])
            other = f"Of the images of its sample, {untrusted_files.spelled(used)} is used."
            reasons += [(image.name, other) for between, image in sample.images.items() if between not in chosen]
        self.problems += [(f"{tar}/{untrusted_files.spelled(name)}", reason) for name, reason in reasons]
        if not chosen:
            if sample.texts and not sample.not_read:
                self.problems.append((_where(sample, tar), "It has a text and no image."))
            return
        wide = {wide_encoding(raw) for raw in sample.texts.values()} - {"", "utf-16"}
        if self._encoding in ("auto", "utf-8") and wide:
            self._guessed.setdefault(min(wide), []).append(_where(sample, tar))
        if self._encoding == "auto" and any(map(_is_odd, sample.texts.values())):
            self._of_tar.append(sample)
        else:
            self._of_tar += self._pairs(sample, tar, self._encoding)

    def end_tar(self, tar: str) -> None:
        """Decode the waiting texts in the detected encoding."""
        odd = [
            raw
            for sample in self._of_tar
            if isinstance(sample, _Sample)
            for raw in sample.texts.values()
            if _is_odd(raw)
        ]
        lines = [line for raw in odd for line in raw.splitlines() if not line.isascii()]
        guess = encoding_of_lines(lines[:_MOST_LINES]) if lines else "utf-8"
        for sample in self._of_tar:
            self.found += self._pairs(sample, tar, guess) if isinstance(sample, _Sample) else [sample]
            if isinstance(sample, _Sample) and guess != "utf-8":
                self._guessed.setdefault(guess, []).append(_where(sample, tar))
        self._of_tar = []

    def notes(self) -> list[str]:
        """Return a message for each detected encoding, and one on members that are not read."""
        named = ", ".join(f"{count:,} {untrusted_files.spelled(what)}" for what, count in self.skipped.most_common(5))
        skipped = [f"Skipped in the tars, neither image nor text: {named}."] if named else []
        names = {encoding: NAMES.get(encoding, encoding.upper()) for encoding in self._guessed}
        return [*skipped, *self._lines.notes()] + [
            f"{_counted(texts)} not UTF-8; {'it is' if len(texts) == 1 else 'they are'} read as {names[encoding]}. Set "
            "data.encoding if letters are wrong."
            for encoding, texts in self._guessed.items()
        ]

    def _pairs(self, sample: _Sample, tar: str, encoding: str) -> list[Source]:
        """Return the pairs of a sample; a problem is recorded for each that is invalid."""
        pairs: list[Source] = []
        for between in sample.chosen():
            image = sample.images[between]
            try:
                texts = sample.texts_of(between)
                where = f"{tar}/{untrusted_files.spelled(image.name)}" if between else _where(sample, tar)
                if not texts and sample.texts:
                    names = ", ".join(sorted(untrusted_files.spelled(".".join(name)) for name in sample.texts)[:4])
                    raise ValueError(f"Its sample has several texts, and none is named as the image: {names}.")
                captions, label, metadata = self._words(texts, encoding, where)
                if not untrusted_files.is_text("".join((image.name, *captions, label, *metadata, *metadata.values()))):
                    raise ValueError("Its name or caption is not UTF-8 text.")
            except ValueError as reason:
                self.problems.append((where, str(reason)))
                continue
            pairs += [Source(image, f"{tar}/{image.name}", caption, label, metadata) for caption in captions]
        return pairs

    def _words(self, texts: dict[str, bytes], encoding: str, where: str) -> tuple[list[str], str, dict[str, str]]:
        """Return captions, class and metadata of one sample.

        Raises:
            ValueError: There is neither caption nor class; the message is the reason.
        """
        decoded = {kind: _decoded(kind, raw, encoding) for kind, raw in texts.items()}
        metadata, listed = _metadata(decoded.get("json", ""))
        label = _label(decoded.get("cls", "").strip(), self._names)
        captions = self._lines.of(where, next((decoded[kind] for kind in _CAPTION_KINDS if kind in decoded), ""))
        for key in CAPTION_KEYS:
            captions = captions or list(filter(None, [" ".join(metadata.pop(key, "").split())]))
        captions = captions or listed
        if not captions and label:
            captions = [captioned(self._template, label)]
        if not captions:
            raise ValueError(
                "Its caption is empty."
                if decoded.keys() & {*_CAPTION_KINDS}
                else "It has an image and neither text nor class."
            )
        return captions, label, metadata


def _counted(texts: list[str]) -> str:
    if len(texts) == 1:
        return f"1 text in tars, that of {texts[0]}, is"
    return f"{len(texts):,} texts in tars, first that of {texts[0]}, are"


def _where(sample: _Sample, tar: str) -> str:
    return f"{tar}/{untrusted_files.spelled(sample.key)}"


def _is_odd(raw: bytes) -> bool:
    """Return whether the text is not UTF-8."""
    if len(raw) > MOST_TEXT or wide_encoding(raw) or raw.isascii():
        return False
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _decoded(kind: str, raw: bytes, encoding: str) -> str:
    if len(raw) > MOST_TEXT:
        raise ValueError(f"Its .{kind} is longer than {MOST_TEXT:,} bytes.")
    if encoding in ("auto", "utf-8"):
        encoding = wide_encoding(raw) or "utf-8"
    try:
        # Python's own "utf-8-sig" takes three times as long.
        return raw.removeprefix(codecs.BOM_UTF8 if encoding == "utf-8" else b"").decode(encoding)
    except UnicodeDecodeError as error:
        name = NAMES.get(encoding, encoding.removesuffix("-sig").upper())
        raise ValueError(f"Its .{kind} is not {name} text (byte {error.start}). Set data.encoding.") from None


def _metadata(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the plain values of a JSON object, as text, and the captions that it lists or that are all it is."""
    if not text:
        return {}, []
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Its .json cannot be read: {error}.") from None
    if isinstance(document, list) and isinstance(next(iter(document), None), str):
        document = {LISTED_KEYS[0]: document}
    if not isinstance(document, dict):
        raise ValueError("Its .json is not an object.")
    plain = {str(key): value for key, value in document.items() if isinstance(value, str | int | float)}
    values: list[Any] = next((document[key] for key in LISTED_KEYS if isinstance(document.get(key), list)), [])
    listed = [" ".join(one.split()) for one in values if isinstance(one, str)]
    return {key: value if isinstance(value, str) else f"{value}" for key, value in plain.items()}, [
        *filter(None, listed)
    ]


def _label(text: str, names: list[str]) -> str:
    if text.isdecimal() and names:
        if int(text) >= len(names):
            raise ValueError(f"Its class {text} has no name in classnames.txt, which has {len(names):,}.")
        return names[int(text)]
    return text


def _class_names(folder: Path, encoding: str, log: ImportLog) -> list[str]:
    """Read class i from line i of `classnames.txt`, which CLIP_benchmark puts next to the tars or one folder above."""
    for file in (folder / "classnames.txt", folder.parent / "classnames.txt"):
        try:
            text = untrusted_files.read_bytes(file, untrusted_files.MOST_SETTINGS).decode(
                encoding_for(file, encoding, log)
            )
            return [line.strip() for line in text.removeprefix("\ufeff").splitlines()]
        except (OSError, UnicodeDecodeError):
            continue
    return []


def _decompressed(tar: Path, workspace_folder: Path) -> Path:
    """Return the tar decompressed, because a compressed one has no random access."""
    stat = tar.stat()
    digest = hashlib.blake2b(f"{tar.absolute()} {stat.st_size} {stat.st_mtime_ns}".encode(), digest_size=8)
    folder = derived.place(workspace_folder, workspace_folder / "cache" / f"{digest.hexdigest()}-tar")

    def write(unfinished: Path) -> None:
        left = _LEAST_UNPACKED + _MOST_RATIO * stat.st_size
        with (
            gzip.open(tar) as packed,
            io.BufferedWriter(confined.open_file(unfinished, "shard.tar", "wb")) as plain,  # type: ignore[type-var]
        ):
            while block := _block(packed):
                left -= len(block)
                if left < 0:
                    raise tarfile.ReadError(
                        f"it unfolds to over {_MOST_RATIO} times its size, which is implausible for images"
                    )
                if shutil.disk_usage(unfinished).free < 64 * 2**20:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                plain.write(block)

    return written_once(folder, write, lambda: None) / "shard.tar"


def _block(packed: gzip.GzipFile) -> bytes:
    try:
        return packed.read(1 << 20)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        # An OSError would be taken for one of the disk that is written.
        raise tarfile.ReadError(f"its compression is damaged: {error}") from error


def _why(tar: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "There is no such tar."
    if isinstance(error, tarfile.TarError | EOFError):
        return f"It is not a tar file, or it is damaged: {error}."
    return f"It cannot be read: {getattr(error, 'strerror', None) or error}."
