"""Builds what is installed: `python packaging/build.py deb|run|exe OUT`. README.md here tells how each is tried.

Each holds the window and no torch; the window fetches that (`trainer install`). Packages come from the index that uv is
set up for, wheels only. Nothing that is built is committed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME, VERSION = PROJECT["name"], PROJECT["version"]
MAINTAINER = "Contrastive Explorer contributors <maintainers@contrastive-explorer.invalid>"
LIBRARY = f"usr/lib/{NAME}"
MAINS = {"contrastive-explorer": "explorer", "trainer": "trainer"}
"""Command -> the package whose `__main__` it is."""
DEBIAN_PYTHON = "3.11"
WINDOWS_PYTHON = "3.12"
TOOLS = ("scripts", "Qt/qml", "Qt/metatypes", "typesystems", "include", "glue", "doc")
"""Of PySide6: what develops programs."""
TESTED = ("numpy", "scipy", "sklearn", "matplotlib", "numba", "pyarrow", "llvmlite")
"""Packages that come with their tests."""
UNUSED = ("test", "idlelib", "turtledemo", "ensurepip", "lib2to3", "site-packages")
"""Of the standard library: what an application never imports."""

WINDOWLESS = ("_tkinter*", "_test*", "_ctypes_test*", "nis.*", "_dbm.*", "_gdbm.*", "_xx*", "xx*")
"""Extension modules that an application with Qt never imports, and whose libraries are not worth packing."""
SYSTEM_LIBRARIES = r"(ld-linux|linux-vdso|lib(c|m|dl|rt|util|pthread|resolv)\.so)"
"""Parts of glibc, which must be the system's own; newer ones run what was linked with older ones."""


def run(*words: str | Path, **options: object) -> str:
    """Runs a program and returns what it prints; what it says when it fails ends this one."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{words[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def payload(into: Path, python: str, *platform: str) -> None:
    """Installs the wheel of this checkout and what the window needs into a folder."""
    wheels = into.parent / "wheel"
    run("uv", "build", "--wheel", "--quiet", "--out-dir", wheels, ROOT)
    (wheel,) = wheels.glob("*.whl")
    words = ["uv", "pip", "install", "--quiet", "--no-config", "--only-binary", ":all:", "--target", into]
    constraints = into.parent / "constraints.txt"
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = [line.removesuffix("\\").strip() for line in lock.splitlines() if re.match(r"[A-Za-z0-9]", line)]
    constraints.write_text("\n".join(lines), "utf-8")
    run(*words, "--constraints", constraints, "--python-version", python, *platform, wheel)
    left = [into / "PySide6" / name for name in TOOLS]
    left += [path for name in TESTED for path in (into / name).rglob("tests")]
    left += [*into.rglob("__pycache__"), *into.glob("*.lock")]
    left += [path for path in (into / "bin").glob("*") if path.name not in ("uv", "uv.exe")]
    for path in left:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def desktop_files(share: Path) -> None:
    """Puts entry, AppStream data, file types and icon where a desktop looks for them, below `share`."""
    (metainfo,) = HERE.glob("*.metainfo.xml")
    for source, folder, name in (
        (HERE / f"{NAME}.desktop", "applications", f"{NAME}.desktop"),
        (metainfo, "metainfo", metainfo.name),
        (HERE / f"{NAME}.mime.xml", "mime/packages", f"{NAME}.xml"),
        (ROOT / "assets" / "icons" / f"{NAME}.svg", "icons/hicolor/scalable/apps", f"{NAME}.svg"),
    ):
        (share / folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, share / folder / name)


def program(file: Path, text: str) -> None:
    """Writes a text that can be run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def system_packages() -> list[str]:
    """Returns Debian's libraries that Qt needs: those of README.md."""
    line = re.search(r"apt-get install -y (.+)", (ROOT / "README.md").read_text(encoding="utf-8"))[1]
    return line.split()


def deb(out: Path, work: Path) -> Path:
    """Builds the package for Debian 12 and returns it."""
    tree = work / "tree"
    library = tree / LIBRARY
    payload(library, DEBIAN_PYTHON)
    run(sys.executable, "-m", "compileall", "-q", "-j", "0", "-s", tree, "-p", "/", library)
    for name, package in MAINS.items():
        start = (
            f"import sys\n\nsys.path.insert(0, '/{LIBRARY}')\nfrom {package}.__main__ import main\n\nsys.exit(main())\n"
        )
        program(tree / "usr" / "bin" / name, f"#!/usr/bin/python3 -P\n{start}")
    desktop_files(tree / "usr" / "share")
    document = tree / "usr" / "share" / "doc" / NAME
    document.mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", document / "copyright")
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) // 1024
    following = f"3.{int(DEBIAN_PYTHON.partition('.')[2]) + 1}"
    needs = [f"python3 (>= {DEBIAN_PYTHON})", f"python3 (<< {following})", *system_packages()]
    control = (HERE / "debian" / "control").read_text(encoding="utf-8")
    values = {"version": VERSION, "needs": ", ".join(needs), "size": str(size), "maintainer": MAINTAINER}
    control = re.sub(r"@(\w+)@", lambda found: values[found[1]], control)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    program(tree / "DEBIAN" / "prerm", (HERE / "debian" / "prerm").read_text(encoding="utf-8"))
    file = out / f"{NAME}_{VERSION}_amd64.deb"
    run("dpkg-deb", "--root-owner-group", "-Zzstd", "--build", tree, file)
    return file


def own_python(prefix: Path, into: Path) -> str:
    """Copies an interpreter that was installed at `prefix`, makes it run from anywhere, and returns its version."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = run(prefix / "bin" / "python3", "-I", "-c", asked).strip()
    library = f"lib/python{version}"
    ignore = shutil.ignore_patterns("__pycache__", *UNUSED, f"config-{version}-*")
    shutil.copytree(prefix / library, into / library, ignore=ignore, symlinks=True)
    for pattern in WINDOWLESS:
        for file in (into / library / "lib-dynload").glob(pattern):
            file.unlink()
    (into / "bin").mkdir()
    shutil.copy(prefix / "bin" / f"python{version}", into / "bin" / "python3")
    _relocate(into, prefix)
    return version


def _relocate(python: Path, prefix: Path) -> None:
    """Copies the libraries that an interpreter was linked with next to it, and makes them be found from where it lies.

    Those of the system that every Linux has stay the system's; `patchelf` writes the paths.
    """
    library = python / "lib"
    binary = python / "bin" / "python3"
    waiting = [(binary, prefix / "bin" / "python3")]
    waiting += [(one, prefix / one.relative_to(python)) for one in library.glob("python*/lib-dynload/*.so")]
    done = set()
    while waiting:
        file, original = waiting.pop()
        for line in run("ldd", original).splitlines():
            name, _, place = (part.strip() for part in line.partition("=>"))
            place = place.partition(" (")[0]
            if place and name not in done and not re.match(SYSTEM_LIBRARIES, name):
                done.add(name)
                shutil.copy(place, library / name)
        run("patchelf", "--set-rpath", f"$ORIGIN/{os.path.relpath(library, file.parent)}", file)
    for name in done:
        run("patchelf", "--set-rpath", "$ORIGIN", library / name)


def self_extracting(out: Path, work: Path, prefix: Path) -> Path:
    """Builds the installer for any Linux, with a Python of its own, and returns it."""
    tree = work / "tree"
    version = own_python(prefix, tree / "python")
    payload(tree / "python" / "lib" / f"python{version}" / "site-packages", version)
    python = tree / "python" / "bin" / "python3"
    run(python, "-m", "compileall", "-q", "-j", "0", "-s", tree, tree / "python" / "lib", env=_own_environment())
    for name, package in MAINS.items():
        start = f'exec "$here/python/bin/python3" -P -m {package} "$@"'
        program(tree / "bin" / name, f'#!/bin/sh\nhere=$(dirname "$(dirname "$(readlink -f "$0")")")\n{start}\n')
    desktop_files(tree / "share")
    for name in ("install.sh", "uninstall.sh"):
        program(tree / name, (HERE / "run" / name).read_text(encoding="utf-8"))
    file = out / f"{NAME}-{VERSION}-x86_64.run"
    # Every Linux has gzip; a minimal Debian has no xz.
    words = ("--gzip", "--complevel", "4", "--nox11", "--sha256")
    run("makeself", *words, tree, file, f"Contrastive Explorer {VERSION}", "./install.sh")
    return file


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def exe(out: Path, work: Path, prefix: Path | None) -> Path:
    """Builds the installer for Windows with NSIS and returns it; `prefix` is a Python for Windows."""
    tree = work / "tree"
    payload(tree / "packages", WINDOWS_PYTHON, "--python-platform", "x86_64-pc-windows-msvc")
    if prefix is not None:
        shutil.copytree(prefix, tree / "python", ignore=shutil.ignore_patterns("__pycache__", *UNUSED))
    else:
        print("Warning: without --python, a Python for Windows, the installer is for trying the recipe only.")
        (tree / "python").mkdir()
    for name, package in MAINS.items():
        lines = "import sys, os\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'packages'))\n"
        (tree / f"{name}.pyw").write_text(f"{lines}from {package}.__main__ import main\nsys.exit(main())\n", "utf-8")
    file = out / f"{NAME}-{VERSION}-win64.exe"
    given = {"VERSION": VERSION, "TREE": str(tree), "OUT": str(file)}
    run("makensis", "-V2", *(f"-D{key}={value}" for key, value in given.items()), HERE / "windows" / "installer.nsi")
    return file


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("deb", "run", "exe"))
    parser.add_argument("out", type=Path, help="folder of the result")
    parser.add_argument("--python", type=Path, help="prefix of the Python that is packed (run, exe)")
    parser.add_argument("--work", type=Path, help="folder for what is packed; is emptied (default: OUT/work-WHAT)")
    args = parser.parse_args(argv)
    work = (args.work or args.out / f"work-{args.what}").absolute()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    out = args.out.absolute()
    if args.what == "deb":
        file = deb(out, work)
    elif args.what == "run":
        file = self_extracting(out, work, args.python or Path(sys.base_prefix))
    else:
        file = exe(out, work, args.python)
    packed = sum(path.stat().st_size for path in (work / "tree").rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{file}: {file.stat().st_size / 1e6:,.0f} MB, {packed / 1e6:,.0f} MB unpacked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
