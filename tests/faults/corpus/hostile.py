"""Malicious files made from a seed, each with the way a user opens it.

Nothing here is stored: every file is written when the test runs. Where code could run, it would touch the canary.
"""

import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.builders import add_members

Order = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """The folder of a malicious file, and the file its code would touch."""

    folder: Path
    canary: Path

    def file(self, name: str, content: bytes | str = b"") -> Path:
        """Create a file in the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def gap(self, name: str, size: int, head: bytes = b"") -> Path:
        """Create a sparse file of `size` zeros after its head."""
        path = self.file(name, head)
        os.truncate(path, size)
        return path

    @property
    def command(self) -> str:
        """The command that a shell would run."""
        return f"touch {self.canary}"


Make = Callable[[Place], Order]
CASES: dict[str, Make] = {}


def case(name: str) -> Callable[[Make], Make]:
    """Add a factory to the corpus."""

    def put(make: Make) -> Make:
        assert name not in CASES
        CASES[name] = make
        return make

    return put


def opened(path: Path | str) -> Order:
    return {"trainer": ["open", str(path), "--workspace", "space"]}


def shown(path: Path | str) -> Order:
    return {"trainer": ["data", "show", "--data", str(path), "--workspace", "space"]}


def fitted(path: Path | str) -> Order:
    return {"trainer": ["fit", "--config", str(path), "--workspace", "space"]}


def called(way: str, *arguments: Path | str) -> Order:
    return {"call": [way, *map(str, arguments)]}


# -- what runs code ---------------------------------------------------------------------------------------------


class Runs:
    """An object whose pickle runs a command."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def pickled(place: Place, protocol: int = 4) -> bytes:
    return pickle.dumps(Runs(place.command), protocol=protocol)


def by_hand(place: Place) -> bytes:
    """Return a protocol 0 pickle of the kind that has evaded pickle scanners."""
    return b"cposix\nsystem\n(S'" + place.command.encode() + b"'\ntR."


def torch_archive(place: Place, found: Any, name: str = "evil.pt", **options: Any) -> Path:
    import torch

    buffer = io.BytesIO()
    torch.save(found, buffer, **options)
    return place.file(name, buffer.getvalue())


for suffix, protocol in ((".pt", 2), (".bin", 4), (".pth", 5), (".ckpt", 3)):

    @case(f"a pickle named {suffix}")
    def _(place: Place, suffix: str = suffix, protocol: int = protocol) -> Order:
        return opened(place.file(f"evil{suffix}", pickled(place, protocol)))


@case("a pickle of protocol 0 named .pt")
def _(place: Place) -> Order:
    return opened(place.file("evil.pt", by_hand(place)))


@case("a pickle named .safetensors")
def _(place: Place) -> Order:
    return opened(place.file("evil.safetensors", pickled(place)))


@case("a pickle in torch's archive")
def _(place: Place) -> Order:
    return opened(torch_archive(place, {"state_dict": Runs(place.command)}))


@case("a pickle in torch's old format")
def _(place: Place) -> Order:
    return opened(torch_archive(place, {"a": Runs(place.command)}, _use_new_zipfile_serialization=False))


@case("a pickle beside good tensors")
def _(place: Place) -> Order:
    import torch

    return opened(torch_archive(place, {"state_dict": {"a": torch.ones(4)}, "args": Runs(place.command)}, "evil.bin"))


@case("a pickle in the attributes of a tensor")
def _(place: Place) -> Order:
    import torch

    tensor = torch.nn.Parameter(torch.ones(3))
    tensor.extra = Runs(place.command)
    return opened(torch_archive(place, {"a": tensor}))


@case("a program of TorchScript")
def _(place: Place) -> Order:
    import torch

    path = place.folder / "program.pt"
    torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)).save(str(path))
    return opened(path)


@case("a torch.package with a pickle")
def _(place: Place) -> Order:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("evil/.data/extern_modules", "os")
        archive.writestr("evil/model/model.pkl", pickled(place))
    return opened(place.file("evil.pt", buffer.getvalue()))


@case("the run of a stranger with a pickle as its checkpoint")
def _(place: Place) -> Order:
    place.file("run/params.txt", "model: RN50\nname: evil\n")
    place.file("run/checkpoints/epoch_1.pt", pickled(place))
    return opened(place.folder / "run")


@case("the hub's folder with a pickle as its weights")
def _(place: Place) -> Order:
    place.file("hub/open_clip_config.json", json.dumps({"model_cfg": SMALL}))
    place.file("hub/open_clip_pytorch_model.bin", pickled(place))
    return opened(f"local-dir:{place.folder / 'hub'}")


@case("a pickle as a model's tokenizer")
def _(place: Place) -> Order:
    return called("tokenizer", place.file("tokenizer.json", pickled(place)))


@case("a pickle as coordinates (.npy)")
def _(place: Place) -> Order:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Runs(place.command)], dtype=object), allow_pickle=True)
    return called("coordinates", place.file("evil.npy", buffer.getvalue()))


@case("a bare pickle as coordinates (.npy)")
def _(place: Place) -> Order:
    return called("coordinates", place.file("evil.npy", pickled(place)))


@case("an .npz with a pickle as coordinates")
def _(place: Place) -> Order:
    buffer = io.BytesIO()
    np.savez(buffer, x=np.array([Runs(place.command)], dtype=object))
    return called("coordinates", place.file("evil.npy", buffer.getvalue()))


@case("code in the header of an .npy")
def _(place: Place) -> Order:
    code = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').system({place.command!r}), 2)}}\n"
    return called("coordinates", place.file("evil.npy", npy(code)))


@case("a pickle in the embeddings of a stranger's workspace")
def _(place: Place) -> Order:
    card = {"format": 1, "model": "m", "step": 1, "dataset": "d", "split": "s", "n": 1, "d": 2, "arrays": ["image"]}
    place.file("snapshot/snapshot.json", json.dumps(card | {"sampled": False}))
    place.file("snapshot/image.npy", pickled(place))
    return called("snapshot", place.folder / "snapshot")


@case("a pickle in the checkpoint of a stranger's workspace")
def _(place: Place) -> Order:
    return _checkpoint(place, torch_archive(place, {"step": 1, "x": Runs(place.command)}).read_bytes())


@case("a command instead of a tar (pipe:)")
def _(place: Place) -> Order:
    return shown(f"pipe:{place.command}{{0..1}}")


@case("a command between tars (a.tar::pipe:)")
def _(place: Place) -> Order:
    return shown(f"{place.folder}/a.tar::pipe:{place.command}")


@case("a command as a model")
def _(place: Place) -> Order:
    return opened(f"pipe:{place.command}")


@case("pickles as members of a tar (.pyd .pth .pkl .npy)")
def _(place: Place) -> Order:
    members = {f"0.{ending}": by_hand(place) for ending in ("pyd", "pkl", "pickle", "pth", "npy", "npz", "ten", "py")}
    return shown(tar(place, members))


@case("YAML that makes an object, as a configuration")
def _(place: Place) -> Order:
    return fitted(place.file("evil.yaml", f"!!python/object/apply:os.system ['{place.command}']\n"))


@case("a configuration whose data are a command")
def _(place: Place) -> Order:
    text = f'[data]\nkind = "webdataset"\npath = "pipe:{place.command}"\n'
    return fitted(place.file("evil.toml", text))


@case("a configuration whose model is a pickle")
def _(place: Place) -> Order:
    file = place.file("evil.bin", pickled(place))
    return fitted(place.file("evil.toml", f'[model]\nkind = "open_clip"\nname = {json.dumps(str(file))}\n'))


@case("a configuration whose tokenizer is a pickle")
def _(place: Place) -> Order:
    file = place.file("tokenizer.json", pickled(place))
    model = f'[model]\nkind = "open_clip"\nname = "RN50"\ntokenizer = "{file}"\n'
    return fitted(place.file("evil.toml", f'[data]\nkind = "folder"\npath = "{place.folder}"\n{model}'))


@case("a configuration with fields of Python's own")
def _(place: Place) -> Order:
    return fitted(place.file("evil.toml", '__class__ = "os.system"\n[data]\n__reduce__ = ["os.system", "x"]\n'))


@case("an extension type of Parquet that carries a pickle")
def _(place: Place) -> Order:
    words = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": pickled(place)}
    fields = [pa.field("filepath", pa.string()), pa.field("title", pa.string(), metadata=words)]
    path = place.folder / "evil.parquet"
    pq.write_table(
        pa.table([[f"{i}.png" for i in range(20)], [f"a {i}" for i in range(20)]], schema=pa.schema(fields)), path
    )
    return shown(path)


@case("an EPS named .png that starts a command")
def _(place: Place) -> Order:
    text = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(%pipe%{place.command}) (r) file\n%%EOF\n"
    return shown(picture(place, text.encode()))


# -- what takes all memory, all time or all of the disk -----------------------------------------------------------


SMALL: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 12, "vocab_size": 49_408, "width": 32, "heads": 2, "layers": 2},
}


def npy(header: str, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header.encode() + body


def safetensors(place: Place, header: bytes, claimed: int | None = None, body: bytes = b"") -> Path:
    return place.file(
        "evil.safetensors", struct.pack("<Q", len(header) if claimed is None else claimed) + header + body
    )


@case("a view of a trillion numbers")
def _(place: Place) -> Order:
    import torch

    return opened(torch_archive(place, {"a": torch.zeros(1).expand(10**6, 10**6)}))


@case("a sparse tensor of a trillion numbers")
def _(place: Place) -> Order:
    import torch

    one = torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.long), torch.ones(1), (10**6, 10**6))
    return opened(torch_archive(place, {"a": one}))


@case("a compressed archive of zeros")
def _(place: Place) -> Order:
    path = place.folder / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}.")
        with archive.open("archive/data/0", "w", force_zip64=True) as member:
            for _ in range(64):
                member.write(bytes(1 << 20))
    return opened(path)


@case("an archive of 60,000 members")
def _(place: Place) -> Order:
    path = place.folder / "many.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(60_000):
            archive.writestr(zipfile.ZipInfo(f"a/{number}"), b"")
    return opened(path)


@case("an archive whose directory lies about its sizes")
def _(place: Place) -> Order:
    import torch

    content = bytearray(torch_archive(place, {"a": torch.ones(64)}).read_bytes())
    at = content.rfind(b"PK\x01\x02")
    content[at + 20 : at + 28] = struct.pack("<II", 0xFFFFFF00, 0xFFFFFF00)
    return opened(place.file("evil.pt", bytes(content)))


@case("a pickle of tensors that asks for 100 GB of zeros")
def _(place: Place) -> Order:
    body = b"\x80\x02cbuiltins\nbytearray\n\x8a\x05" + (10**11).to_bytes(5, "little") + b"\x85R."
    path = place.folder / "evil.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", body)
        archive.writestr("archive/version", "3\n")
    return opened(path)


@case("a safetensors header of 100 GB")
def _(place: Place) -> Order:
    return opened(safetensors(place, b"{}", claimed=10**11))


@case("a safetensors shape that overflows")
def _(place: Place) -> Order:
    header = {"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}}
    return opened(safetensors(place, json.dumps(header).encode(), body=bytes(4)))


@case("a safetensors file of 100,000 empty tensors")
def _(place: Place) -> Order:
    header = {f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(100_000)}
    return opened(safetensors(place, json.dumps(header).encode()))


@case("a safetensors header a hundred thousand levels deep")
def _(place: Place) -> Order:
    return opened(safetensors(place, b'{"a":' * 100_000 + b"1" + b"}" * 100_000))


def _model(place: Place, settings: Any) -> Order:
    import torch
    from safetensors.torch import save

    place.file("hub/open_clip_config.json", settings if isinstance(settings, str) else json.dumps(settings))
    place.file("hub/open_clip_model.safetensors", save({"visual.x": torch.ones(4), "text_projection": torch.ones(2)}))
    return opened(f"local-dir:{place.folder / 'hub'}")


@case("settings of a model with a trillion weights")
def _(place: Place) -> Order:
    return _model(place, {"model_cfg": SMALL | {"embed_dim": 10**6, "text_cfg": {"vocab_size": 10**9, "width": 4096}}})


@case("settings of a model with a billion layers")
def _(place: Place) -> Order:
    return _model(place, {"model_cfg": SMALL | {"vision_cfg": {"layers": 10**9, "width": 64, "patch_size": 8}}})


@case("settings of a model that are words")
def _(place: Place) -> Order:
    return _model(place, {"model_cfg": {"embed_dim": "__import__('os')", "vision_cfg": "x", "text_cfg": [1]}})


@case("settings of a model a hundred thousand levels deep")
def _(place: Place) -> Order:
    return _model(place, "[" * 100_000)


@case("settings of a model that name the tower of a stranger")
def _(place: Place) -> Order:
    vision = {"timm_model_name": "hf-hub:evil/model", "image_size": 32}
    return _model(place, {"model_cfg": SMALL | {"vision_cfg": vision}})


@case("an .npy that claims a trillion rows")
def _(place: Place) -> Order:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 2)}\n"
    return called("coordinates", place.file("evil.npy", npy(header, bytes(16))))


@case("an .npy that is terabytes of nothing")
def _(place: Place) -> Order:
    header = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000, 2)}\n")
    return called("coordinates", place.gap("evil.npy", len(header) + 8 * 10**11, header))


@case("a Parquet of thirty million equal coordinates in a few kilobytes")
def _(place: Place) -> Order:
    return called("coordinates", repeated(place, {"x": 1, "y": 2}, 30_000_000))


@case("a table of coordinates of 4 GB")
def _(place: Place) -> Order:
    return called("coordinates", place.gap("evil.csv", 4 << 30, b"x,y\n1,2\n"))


def repeated(place: Place, row: dict[str, Any], n: int) -> Path:
    """Return a small Parquet file of `n` equal rows."""
    words = {name: pa.DictionaryArray.from_arrays(pa.nulls(0, pa.int8()), pa.array([v])) for name, v in row.items()}
    codes = pa.array(np.zeros(n, np.int8))
    table = pa.table({name: pa.DictionaryArray.from_arrays(codes, kind.dictionary) for name, kind in words.items()})
    path = place.folder / "bomb.parquet"
    pq.write_table(table, path, row_group_size=n, compression="zstd", store_schema=False)
    return path


@case("a Parquet table of ten million equal rows in a few kilobytes")
def _(place: Place) -> Order:
    return shown(repeated(place, {"filepath": "a.png", "title": "a"}, 10_000_000))


@case("a JSONL of one line of a gigabyte")
def _(place: Place) -> Order:
    return shown(place.gap("evil.jsonl", 1 << 30, b'{"filepath": "a.png", "title": "'))


@case("a CSV of one cell of a gigabyte")
def _(place: Place) -> Order:
    return shown(place.gap("evil.csv", 1 << 30, b'filepath,title\na.png,"'))


@case("a CSV of one heading of a gigabyte")
def _(place: Place) -> Order:
    return shown(place.gap("evil.csv", 1 << 30, b"filepath,title,"))


@case("JSON a million levels deep")
def _(place: Place) -> Order:
    return shown(place.file("evil.jsonl", '{"filepath": ' + "[" * 1_000_000 + "\n"))


@case("a configuration a hundred thousand levels deep")
def _(place: Place) -> Order:
    return fitted(place.file("evil.toml", "name = " + "[" * 100_000))


@case("a configuration of 2 GB")
def _(place: Place) -> Order:
    return fitted(place.gap("evil.toml", 2 << 30, b'name = "x"\n#'))


@case("a configuration with a number of a million digits")
def _(place: Place) -> Order:
    return fitted(place.file("evil.toml", "seed = " + "9" * 1_000_000))


@case("a range of ten billion tars")
def _(place: Place) -> Order:
    return shown(f"{place.folder}/x{{0..9999999999}}.tar")


@case("braces in braces of braces")
def _(place: Place) -> Order:
    return shown(f"{place.folder}/" + "{a,b}" * 40 + ".tar")


@case("a compressed tar of zeros, a thousand times its size")
def _(place: Place) -> Order:
    head = tarfile.TarInfo("a.png")
    head.size = 1 << 28
    path = place.folder / "bomb.tar.gz"
    with gzip.open(path, "wb", compresslevel=6) as packed:
        packed.write(head.tobuf())
        for _ in range(1 << 5):
            packed.write(bytes(1 << 23))
    return shown(path)


@case("a tar whose long name is 4 GB")
def _(place: Place) -> Order:
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, 4 << 30
    return shown(place.gap("evil.tar", (4 << 30) + 2048, head.tobuf(tarfile.GNU_FORMAT)))


@case("a tar whose extended header is 4 GB")
def _(place: Place) -> Order:
    head = tarfile.TarInfo("x")
    head.type, head.size = tarfile.XHDTYPE, 4 << 30
    return shown(place.gap("evil.tar", (4 << 30) + 2048, head.tobuf(tarfile.GNU_FORMAT)))


@case("a tar member of minus one byte")
def _(place: Place) -> Order:
    head = bytearray(tarfile.TarInfo("a.png").tobuf())
    head[124:136] = b"\xff" * 12
    head[148:156] = b"%06o\0 " % (sum(head[:148]) + 256 + sum(head[156:512]))
    return shown(place.file("evil.tar", bytes(head) + bytes(2048)))


@case("a sparse tar member of a terabyte")
def _(place: Place) -> Order:
    head = tarfile.TarInfo("a.png")
    head.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(head.tobuf(tarfile.GNU_FORMAT))
    block[386:398], block[398:410] = b"0" * 11 + b" ", b"0" * 11 + b" "
    block[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:512]))
    return shown(place.file("evil.tar", bytes(block) + bytes(2048)))


# -- pictures -----------------------------------------------------------------------------------------------------


def picture(place: Place, content: bytes, name: str = "evil.png") -> Path:
    """Return a folder with an image and its caption, twice, since a single one would leave no training pair."""
    for copy in (name, f"again-{name}"):
        place.file(f"pictures/{copy}", content)
        place.file(f"pictures/{Path(copy).stem}.txt", "a caption")
    return place.folder / "pictures"


def png(width: int, height: int, body: bytes = b"", *chunks: tuple[bytes, bytes], colour: int = 2) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    every = [(b"IHDR", head), *chunks, (b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in every)


@case("a PNG of ten billion pixels")
def _(place: Place) -> Order:
    return shown(picture(place, png(100_000, 100_000, zlib.compress(bytes(1 << 20)))))


@case("a PNG of 144 million pixels in 150 kB")
def _(place: Place) -> Order:
    return shown(picture(place, png(12_000, 12_000, zlib.compress(bytes(12_000 * 12_001), 9), colour=0)))


@case("a PNG with 150 MB of text")
def _(place: Place) -> Order:
    text = b"words\0\0" + zlib.compress(bytes(150_000_000), 1)
    return shown(picture(place, png(8, 8, zlib.compress(bytes(8 * 25)), (b"zTXt", text))))


@case("a PNG with 150 MB of colour profile")
def _(place: Place) -> Order:
    profile = b"p\0\0" + zlib.compress(bytes(150_000_000), 1)
    return shown(picture(place, png(8, 8, b"damaged", (b"iCCP", profile))))


@case("a GIF of four billion pixels")
def _(place: Place) -> Order:
    head = b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0xF0, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x02\x02\x44\x01\x00\x3b"
    return shown(picture(place, head + frame, "evil.gif"))


@case("a TIFF of four billion pixels")
def _(place: Place) -> Order:
    return shown(picture(place, tiff({256: 65535, 257: 65535}), "evil.tif"))


def tiff(changes: dict[int, int]) -> bytes:
    """Return a gray TIFF of 8 x 8 with some fields changed."""
    fields = {256: 8, 257: 8, 258: 8, 259: 1, 262: 1, 273: 200, 277: 1, 278: 8, 279: 64} | changes
    rows = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(fields.items()))
    body = struct.pack("<H", len(fields)) + rows + bytes(4)
    return (b"II*\0\x08\0\0\0" + body).ljust(200, b"\0") + bytes(range(64))


@case("a TIFF whose directories go round in a circle")
def _(place: Place) -> Order:
    content = bytearray(tiff({259: 7}))
    content[10 + 9 * 12 : 14 + 9 * 12] = struct.pack("<I", 8)
    return shown(picture(place, bytes(content), "evil.tif"))


@case("a BMP of a billion rows")
def _(place: Place) -> Order:
    head = (
        b"BM" + struct.pack("<IHHI", 1 << 20, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 8, -(2**30), 1, 24, *[0] * 6)
    )
    return shown(picture(place, head + bytes(1000), "evil.bmp"))


@case("a WebP of 268 million pixels")
def _(place: Place) -> Order:
    size = struct.pack("<I", 16383)[:3]
    body = (
        b"WEBPVP8X" + struct.pack("<IB", 10, 0) + bytes(3) + size + size + b"VP8 " + struct.pack("<I", 10) + bytes(10)
    )
    return shown(picture(place, b"RIFF" + struct.pack("<I", len(body)) + body, "evil.webp"))


@case("a PPM of a quintillion pixels")
def _(place: Place) -> Order:
    return shown(picture(place, b"P6 999999999 999999999 255\n" + bytes(100), "evil.ppm"))


@case("a picture file of a terabyte of nothing")
def _(place: Place) -> Order:
    folder = picture(place, b"")
    os.truncate(folder / "evil.png", 1 << 40)
    return shown(folder)


for kind, name, start in (
    (
        "an SVG with a script",
        "evil.png",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'><script>x()</script></svg>",
    ),
    ("a PSD", "evil.jpg", b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 8, 8, 8, 3) + bytes(100)),
    ("a PDF", "evil.png", b"%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(x())>>>>endobj\n%%EOF"),
    ("an ICNS", "evil.png", b"icns" + struct.pack(">I", 24) + b"ic10" + struct.pack(">I", 16) + bytes(8)),
    ("a KTX texture", "evil.png", b"\xabKTX 11\xbb\r\n\x1a\n" + b"\xff" * 64),
    ("a DDS texture", "evil.jpg", b"DDS |\0\0\0" + b"\xff" * 120),
    ("a WMF", "evil.bmp", b"\xd7\xcd\xc6\x9a" + bytes(60)),
    ("a page of HTML", "evil.jpg", b"<html><script>x()</script><img src=x onerror=x()></html>"),
    ("a zip", "evil.png", b"PK\x03\x04" + bytes(60)),
    ("a FITS table", "evil.tif", b"SIMPLE  =                    T" + b" " * 2850),
    ("a program", "evil.png", b"\x7fELF\x02\x01\x01" + bytes(100)),
):

    @case(f"{kind} named {Path(name).suffix}")
    def _(place: Place, name: str = name, start: bytes = start) -> Order:
        return shown(picture(place, start, name))


# -- places and names ---------------------------------------------------------------------------------------------


def tar(place: Place, members: dict[str, bytes], *links: tarfile.TarInfo) -> Path:
    path = place.folder / "evil.tar"
    with tarfile.open(path, "w") as archive:
        add_members(archive, members.items())
        for info in links:
            archive.addfile(info)
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@case("a tar of links out of it")
def _(place: Place) -> Order:
    secret = picture(place, png(8, 8)) / "evil.png"
    kinds = [
        link("0.png", str(secret)),
        link("1.png", "../pictures/evil.png"),
        link("2.png", str(secret), tarfile.LNKTYPE),
    ]
    return shown(tar(place, {}, *kinds, link("0.txt", "/etc/passwd")))


@case("a tar of devices and pipes")
def _(place: Place) -> Order:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    return shown(tar(place, {}, *(link(f"{n}.png", "", kind) for n, kind in enumerate(kinds))))


@case("a tar that would unpack over other files")
def _(place: Place) -> Order:
    return shown(
        tar(place, {"../../over.png": b"x", "/etc/over.txt": b"x", "C:\\over.png": b"x", "a/../../b.txt": b"x"})
    )


@case("a tar in a tar in a tar")
def _(place: Place) -> Order:
    inner = tar(place, {"0.png": png(8, 8), "0.txt": b"x"}).read_bytes()
    return shown(tar(place, {"1.tar": inner, "1.txt": b"x", "2.zip": inner}))


@case("a zip named .tar")
def _(place: Place) -> Order:
    with zipfile.ZipFile(place.folder / "evil.tar", "w") as archive:
        archive.writestr("../../0.png", png(8, 8))
    return shown(place.folder / "evil.tar")


def _pipe(name: str, order: Callable[[Path], Order]) -> Make:
    def make(place: Place) -> Order:
        os.mkfifo(place.folder / name)
        return order(place.folder / name)

    return make


for kind, name, order in (
    ("a model", "evil.pt", opened),
    ("a configuration", "evil.toml", fitted),
    ("a table", "evil.csv", shown),
    ("a tar", "evil.tar", shown),
    ("Parquet", "evil.parquet", shown),
    ("coordinates", "evil.csv", partial(called, "coordinates")),
):
    case(f"a pipe as {kind}")(_pipe(name, order))


@case("an endless device as a model")
def _(place: Place) -> Order:
    (place.folder / "evil.safetensors").symlink_to("/dev/zero")
    return opened(place.folder / "evil.safetensors")


@case("an endless device as a configuration")
def _(place: Place) -> Order:
    return fitted("/dev/zero")


@case("an endless device as JSONL")
def _(place: Place) -> Order:
    (place.folder / "evil.jsonl").symlink_to("/dev/zero")
    return shown(place.folder / "evil.jsonl")


def sound() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(buffer, "PNG")
    return buffer.getvalue()


def _replaced(name: str, put: Callable[[Path], None]) -> Make:
    """Return a factory of a pair whose image or caption is replaced."""

    def make(place: Place) -> Order:
        folder = picture(place, sound() if name.endswith(".txt") else b"")
        (folder / name).unlink()
        put(folder / name)
        return shown(folder)

    return make


case("a pipe as a picture")(_replaced("evil.png", os.mkfifo))
case("a pipe as a caption")(_replaced("evil.txt", os.mkfifo))
case("a caption that is a link to itself")(_replaced("evil.txt", lambda file: file.symlink_to("evil.txt")))
case("a picture that is a link to an endless device")(_replaced("evil.png", lambda file: file.symlink_to("/dev/zero")))


@case("a caption that is a link to a secret")
def _(place: Place) -> Order:
    folder = picture(place, sound())
    (folder / "evil.txt").unlink()
    (folder / "evil.txt").symlink_to(place.file("id_ed25519", "the secret"))
    return shown(folder)


@case("a folder that holds itself")
def _(place: Place) -> Order:
    (place.folder / "round").mkdir()
    (place.folder / "round" / "round").symlink_to("..")
    return shown(place.folder / "round")


for number, (kind, target) in enumerate(
    (
        ("an address", "http://127.0.0.1:9/evil.png"),
        ("a command", "pipe:touch canary"),
        ("a share of another computer", "//evil/share/x.png"),
        ("a share of another computer, as Windows writes it", "\\\\evil\\share\\x.png"),
        ("an endless device", "/dev/zero"),
        ("the memory of the process", "/proc/self/mem"),
        ("a folder", "."),
        ("a NUL", "a\0b.png"),
        ("a name of 5,000 letters", "x" * 5_000),
        ("half a letter", "\ud800.png"),
        ("a table of passwords", "/etc/passwd"),
    )
):

    @case(f"a table whose picture is {kind}")
    def _(place: Place, target: str = target, number: int = number) -> Order:
        again = f"/.{target}" if target.startswith("/") else f"./{target}"
        lines = [json.dumps({"filepath": one, "title": "a caption"}) for one in (target, again)]
        return shown(place.file(f"{number}.jsonl", "\n".join(lines)))


@case("a table whose picture is a pipe")
def _(place: Place) -> Order:
    os.mkfifo(place.folder / "waits.png")
    return shown(place.file("evil.csv", "filepath,title\nwaits.png,a caption\n./waits.png,a caption\n"))


@case("a data set of a stranger's library, with a pickle")
def _(place: Place) -> Order:
    place.file("set/dataset_info.json", "{}")
    place.file("set/state.json", json.dumps({"_data_files": [{"filename": "../../evil.arrow"}], "_fingerprint": "x"}))
    place.file("set/evil.pkl", pickled(place))
    return shown(place.folder / "set")


for name in ("evil.lnk", "evil.url", "evil.desktop", "evil.html", "evil.exe", "evil.pkl", "evil.zip", "evil.py"):

    @case(f"a {Path(name).suffix} as data")
    def _(place: Place, name: str = name) -> Order:
        return shown(place.file(name, f"[Desktop Entry]\nExec={place.command}\nURL=file://x\n"))


# -- workspaces ---------------------------------------------------------------------------------------------------


def listed(place: Place) -> Order:
    return {"trainer": ["runs", "--workspace", str(place.folder / "theirs")]}


@case("a workspace whose database is a pickle")
def _(place: Place) -> Order:
    place.file("theirs/explorer.db", pickled(place))
    return listed(place)


@case("a workspace whose database is that of another program")
def _(place: Place) -> Order:
    import sqlite3

    place.file("theirs/explorer.db")
    with sqlite3.connect(place.folder / "theirs" / "explorer.db") as connection:
        connection.execute("create table notes (words text)")
    connection.close()
    return listed(place)


@case("a workspace whose database is a pipe")
def _(place: Place) -> Order:
    (place.folder / "theirs").mkdir()
    os.mkfifo(place.folder / "theirs" / "explorer.db")
    return listed(place)


def _checkpoint(place: Place, training: bytes) -> Order:
    """Return a checkpoint whose manifest matches its files, since an attacker writes the manifest, too."""
    import hashlib

    import torch
    from safetensors.torch import save

    files = {"model.safetensors": save({"a": torch.ones(2)}), "training.pt": training, "tokenizer.json": b"{}"}
    described = {n: {"bytes": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in files.items()}
    for name, content in files.items():
        place.file(f"step_000001/{name}", content)
    place.file("step_000001/manifest.json", json.dumps({"format": 1, "step": 1, "files": described}))
    return called("checkpoint", place.folder / "step_000001")


@case("a checkpoint of a stranger's workspace that unfolds to gigabytes")
def _(place: Place) -> Order:
    buffer = io.BytesIO()
    import torch

    plain = torch_archive(place, {"step": 1, "a": torch.zeros(80 << 20, dtype=torch.uint8)}, "plain.pt")
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, old.read(member))
    plain.unlink()
    return _checkpoint(place, buffer.getvalue())


# -- drops on the window ------------------------------------------------------------------------------------------


for kind, address in (
    ("an address of the web", "https://127.0.0.1:9/a.png"),
    ("a file of another computer", "file://evil/share/a.png"),
    ("a script for a browser", "javascript:alert(1)//://"),
    ("data in an address", "data:image/svg+xml,<svg://>"),
    ("an endless device", "/dev/zero"),
    ("a table of passwords", "/etc/passwd"),
):

    @case(f"a drop of {kind}")
    def _(place: Place, address: str = address) -> Order:
        return called("drop", address)


for name in ("evil.svg", "evil.svgz", "evil.pdf", "evil.eps", "evil.lnk", "evil.zip", "evil.html", "evil.exe"):

    @case(f"a drop of a {Path(name).suffix}")
    def _(place: Place, name: str = name) -> Order:
        return called("drop", place.file(name, "<svg/>"))


@case("a drop of a pipe")
def _(place: Place) -> Order:
    os.mkfifo(place.folder / "evil.png")
    return called("drop", place.folder / "evil.png")


@case("a drop of a link to a device")
def _(place: Place) -> Order:
    (place.folder / "evil.png").symlink_to("/dev/zero")
    return called("drop", place.folder / "evil.png")


@case("a drop of an SVG named .png")
def _(place: Place) -> Order:
    return called("drop", place.file("evil.png", "<svg xmlns='http://www.w3.org/2000/svg'/>"))


@case("a drop of a picture that is too large")
def _(place: Place) -> Order:
    return called("drop", place.file("evil.png", png(100_000, 100_000)))
