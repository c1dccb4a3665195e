"""The decoding helper: the same pixels, and a malicious image affects only itself."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from trainer.images import Decoder, HelperError, UnreadableImage, read_image, read_picture, read_pictures
from trainer.images import decoder as room

pytestmark = pytest.mark.slow

SIZE = 24


def picture(folder: Path, number: int, side: int = 40) -> Path:
    path = folder / f"{number}.png"
    Image.fromarray(np.random.default_rng(number).integers(0, 255, (side, side + 7, 3), np.uint8)).save(path)
    return path


def scans(count: int, side: int = 3000) -> bytes:
    """Return a progressive JPEG with one scan repeated: a small file, hours of work."""
    import io

    buffer = io.BytesIO()
    Image.new("L", (side, side), 77).save(buffer, "JPEG", progressive=True, quality=20)
    content = buffer.getvalue()
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * count + b"\xff\xd9"


@pytest.fixture
def pixels_file(tmp_path: Path) -> Path:
    path = tmp_path / "pixels"
    path.write_bytes(bytes(200 * SIZE * SIZE * 3))
    return path


@pytest.fixture
def decoder() -> Decoder:
    made = Decoder(limit_s=2)
    yield made
    made.close()


def pixels_of(file: Path, row: int) -> np.ndarray:
    return np.fromfile(file, np.uint8, offset=row * SIZE * SIZE * 3, count=SIZE * SIZE * 3).reshape(SIZE, SIZE, 3)


def test_the_pixels_are_those_of_the_decoder_here(tmp_path: Path) -> None:
    places = [picture(tmp_path, number) for number in range(5)]
    pixels, told = read_pictures([*places, tmp_path / "none.png"], SIZE)
    for number, place in enumerate(places):
        assert (pixels[number] == read_image(place, SIZE)).all()
        assert told[number].reason == ""
    assert told[5].reason == "The file does not exist."
    assert not pixels[5].any()
    assert len({one.digest for one in told}) == 6


def test_a_whole_picture_keeps_its_shape(tmp_path: Path) -> None:
    Image.new("RGB", (90, 30), (9, 8, 7)).save(tmp_path / "wide.png")
    shown = read_picture(tmp_path / "wide.png", 30)
    assert shown.shape == (10, 30, 3)
    assert (shown == (9, 8, 7)).all()
    with pytest.raises(UnreadableImage, match="does not exist"):
        read_picture(tmp_path / "none.png", 30)


def test_relative_places_are_those_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture(tmp_path, 1)
    read_pictures([tmp_path / "1.png"], SIZE)  # a helper runs, in another folder
    monkeypatch.chdir(tmp_path)
    assert read_pictures(["1.png"], SIZE)[1][0].reason == ""


def test_odd_names_reach_the_helper(tmp_path: Path) -> None:
    for name in ("new\nline.png", "עברית.png", os.fsdecode(b"caf\xe9.png"), "a" * 240 + ".png", '"quoted".png'):
        picture(tmp_path, 1).rename(tmp_path / name)
        assert read_pictures([tmp_path / name], SIZE)[1][0].reason == ""


def test_a_picture_that_takes_too_long_is_named_and_the_next_are_decoded(
    tmp_path: Path, pixels_file: Path, decoder: Decoder
) -> None:
    (tmp_path / "slow.jpg").write_bytes(scans(3000))
    places = [picture(tmp_path, 0), tmp_path / "slow.jpg", picture(tmp_path, 2)]
    told = list(decoder.decode(places, size=SIZE, file=pixels_file))
    assert [one.reason for one in told] == ["", "Decoding it took more than 2 seconds.", ""]
    assert (pixels_of(pixels_file, 2) == read_image(places[2], SIZE)).all()
    assert not pixels_of(pixels_file, 1).any()


def test_a_pipe_is_refused_at_once(tmp_path: Path, pixels_file: Path, decoder: Decoder) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (told,) = decoder.decode([tmp_path / "pipe.png"], size=SIZE, file=pixels_file)
    assert told.reason == "It is not a file but a folder, a pipe or a device."


@pytest.mark.real_process
def test_a_picture_that_takes_too_much_memory_is_named(tmp_path: Path, pixels_file: Path) -> None:
    Image.new("RGBA", (5000, 5000)).save(tmp_path / "large.png")
    little = Decoder(memory=250_000_000)
    places = [picture(tmp_path, 0), tmp_path / "large.png", picture(tmp_path, 2)]
    told = list(little.decode(places, size=SIZE, file=pixels_file))
    assert [one.reason for one in told] == [
        "",
        "It takes more than the 0.2 GB of memory allowed for an image.",
        "",
    ]
    assert psutil.Process(little.pid).memory_info().rss < 250_000_000
    little.close()


@pytest.mark.real_process
@pytest.mark.parametrize("mode", ["RGBA", "I;16"])
def test_the_largest_pictures_fit_in_the_memory(mode: str, tmp_path: Path) -> None:
    Image.new(mode, (8000, 8000)).save(tmp_path / "large.tiff", compression="tiff_lzw")
    pixels, told = read_pictures([tmp_path / "large.tiff"], SIZE)
    assert told[0].reason == ""
    assert (pixels[0] == (255 if mode == "RGBA" else 0)).all()


def test_a_helper_that_is_ended_from_outside_is_replaced_and_no_picture_is_blamed(
    tmp_path: Path, pixels_file: Path, decoder: Decoder
) -> None:
    places = [picture(tmp_path, number) for number in range(30)]
    reasons, helpers = [], set()
    for number, told in enumerate(decoder.decode(places, size=SIZE, file=pixels_file)):
        reasons.append(told.reason)
        helpers.add(decoder.pid)
        if number in (3, 17):
            os.kill(decoder.pid, signal.SIGKILL)
    assert reasons == [""] * 30
    assert len(helpers) >= 2
    for number, place in enumerate(places):
        assert (pixels_of(pixels_file, number) == read_image(place, SIZE)).all()


def test_a_picture_that_ends_every_helper_is_named(tmp_path: Path, pixels_file: Path, decoder: Decoder) -> None:
    places = [picture(tmp_path, number) for number in range(3)]
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, os\n"
        "if 'trainer.images.helper' in sys.orig_argv:\n"
        "    from trainer.images import decoding\n"
        "    whole = decoding.read_image\n"
        "    def read_image(place, *more, **how):\n"
        "        return os.abort() if '1.png' in place else whole(place, *more, **how)\n"
        "    decoding.read_image = read_image\n"
    )
    os.environ["PYTHONPATH"] = str(tmp_path)
    try:
        told = list(decoder.decode(places, size=SIZE, file=pixels_file))
    finally:
        del os.environ["PYTHONPATH"]
    assert [bool(one.reason) for one in told] == [False, True, False]
    assert "by SIGABRT" in told[1].reason


def test_a_helper_that_cannot_start_says_why(
    tmp_path: Path, pixels_file: Path, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('no room for a python')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(HelperError, match=r"cannot be started: .*no room for a python"):
        list(decoder.decode(["a.png"], size=SIZE, file=pixels_file))


def test_a_helper_that_is_killed_in_its_first_moments_is_started_once_more(
    tmp_path: Path, pixels_file: Path, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, pathlib\n"
        f"mark = pathlib.Path({str(tmp_path / 'begun')!r})\n"
        "if not mark.exists():\n"
        "    mark.touch()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (decoded,) = decoder.decode([picture(tmp_path, 0)], size=SIZE, file=pixels_file)
    assert (tmp_path / "begun").exists()
    assert not decoded.reason


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path, decoder: Decoder) -> None:
    with pytest.raises(FileNotFoundError):
        list(decoder.decode([picture(tmp_path, 0)], size=SIZE, file=tmp_path / "nowhere"))


def test_who_stops_listening_ends_the_helper(tmp_path: Path, pixels_file: Path, decoder: Decoder) -> None:
    told = decoder.decode([picture(tmp_path, number) for number in range(3)], size=SIZE, file=pixels_file)
    next(told)
    told.close()
    assert decoder.pid is None
    assert len(list(decoder.decode([picture(tmp_path, 0)], size=SIZE, file=pixels_file))) == 1


def test_one_helper_is_kept_and_lent_to_one_at_a_time(tmp_path: Path) -> None:
    path = picture(tmp_path, 0)
    read_pictures([path], SIZE)
    kept = room.idle_decoders[0].pid
    read_pictures([path], SIZE)
    assert [one.pid for one in room.idle_decoders] == [kept]
    with room.borrowed() as first, room.borrowed() as second:
        assert first is not second
    assert len(room.idle_decoders) == 1
    threads = [threading.Thread(target=read_pictures, args=([path], SIZE)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(room.idle_decoders) == 1


def test_a_helper_ends_with_its_program(tmp_path: Path) -> None:
    picture(tmp_path, 0)
    code = (
        "from trainer.images import read_pictures, decoder; "
        f"read_pictures([{str(tmp_path / '0.png')!r}], 8); print(decoder.idle_decoders[0].pid)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    deadline = time.monotonic() + 90
    while psutil.pid_exists(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not psutil.pid_exists(int(done.stdout))
