"""Programs of the trainer that start in milliseconds: a process that has imported them forks them.

`python -m trainer ...` needs two to seven seconds of processor time until it has imported what it needs. `forking`
makes `subprocess.Popen` leave such commands to a server, a child of the test's process. The server's forks are made
with CLONE_PARENT and are thereby children of whoever asked: `wait`, signals, sessions and the number of the process are
those of a process that was started; environment, working folder and pipes are handed over, and the command line is
written where the system shows it. A fork has a server of its own, so that what it starts is forked as well.

Helpers that read untrusted pictures and tables are forked as well, each kind from a server that has imported nothing
else, because their memory is limited. A program that was forked starts true ones.

A test marked `real_process` starts true programs, and so does every computer that is not Linux, every other program,
and a command with options that a fork cannot have.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import io
import itertools
import json
import os
import pkgutil
import platform
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

CLONE: Final = {"x86_64": 56, "aarch64": 220}.get(platform.machine())
CLONE_PARENT: Final = 0x8000
PYTHON: Final = sys.executable
ROOT: Final = Path(__file__).resolve().parents[1]
MODULES: Final = (
    "trainer",
    "trainer.training.agent",
    "tests.faults.breakable_trainer",
    "tests.faults.corpus.warm",
    "tests.forked_training",
)
"""What is forked instead of started: `python -m MODULE`."""
HELPERS: Final = (
    "trainer.images.helper",
    "trainer.untrusted.bounded.child",
    "tests.faults.breakable_window",
    "tests.forked_code",
)
"""What is forked from a server of its own."""
NO_FORK: Final = -1
TIMES_FILE: Final = "CHILD_TIMES_FILE"
"""The variable that names the file of processor times (`tests/child_times.py`)."""
TIMES_OWNER: Final = "CHILD_TIMES_OWNER"
"""The variable that names the test or fixture that pays."""
_ROOM: Final = 8192
"""Bytes for the command line that a fork shows."""
_MESSAGE: Final = 1 << 18
_READ_AT_START: Final = (
    "PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "NUMBA_", "KMP_", "MKL_", "HF_",
    "TORCH_HOME", "TRANSFORMERS_", "XDG_CACHE_",
)  # fmt: skip
"""Variables that a program reads once: a command that sets one otherwise than the server is started."""
_HANDED_OVER: Final = ("PYTHONUNBUFFERED", "PYTHONSAFEPATH", "PYTHONPATH", "PYTHONFAULTHANDLER")
_ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false",
}  # fmt: skip
"""The environment in which libraries start no thread, which a fork would not have."""
_OF_HELPERS: Final = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
"""What their environment has besides (`trainer/untrusted/safe_subprocess.py`)."""
_TRAINED: Final = (
    "fit",
    "serve",
    "resume",
    "evaluate",
    "embed",
    "decode",
    "replay",
    "classify",
    "report",
    "mcp",
)
"""Commands that import torch, or start those that do."""
_HEADLESS: Final = ("analyze", "export", "report", "compare", "matrix", "mcp")
"""Commands that import charts."""

_start_child: Final[Any] = getattr(subprocess.Popen, "_execute_child", None)
AVAILABLE: Final = sys.platform == "linux" and CLONE is not None and _start_child is not None


# -- the side that asks ------------------------------------------------------------------------------------------


class ForkServer:
    """The server of this process, started when it is first needed."""

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # One thread: threads do not survive a fork.
        self.environment = os.environ | _ONE_THREAD | {"PYTHONPATH": str(ROOT)} | dict(more or {})
        self._lock = threading.Lock()
        self._address = f"fork-server-{os.getpid()}-{id(self)}"

    def fork(self, order: Mapping[str, Any], files: Sequence[int]) -> int:
        """Return the process number of a fork that runs the command of `order` with these three files."""
        with self._lock:
            if self._socket is None:
                self._socket = self._started()
            content = json.dumps(order).encode()
            handed = array.array("i", files)
            self._socket.sendmsg([content], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
            return int(self._socket.recv(64))

    def use(self, connected: socket.socket) -> None:
        """Ask the server at the other end."""
        self._socket = connected

    def listens_at(self) -> str:
        """Return the address at which `fork_client.py` finds the server."""
        with self._lock:
            if self._socket is None:
                self._socket = self._started()
            return self._address

    def close(self) -> None:
        """End the server."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.wait()

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind("\0" + self._address)  # an abstract name: there is no file
        listening.listen()
        with theirs, listening:
            handed = (theirs.fileno(), listening.fileno())
            command = [PYTHON, "-P", __file__, *map(str, handed), " " * _ROOM]
            self._process = subprocess.Popen(command, pass_fds=handed, env=self.environment)
        return ours


_server = ForkServer()
_helpers: dict[str, ForkServer] = {}
"""The servers of `HELPERS`, where there are some."""
enabled = True
"""Whether commands are forked now: false while a test needs true programs."""


def close() -> None:
    """End the servers of this process."""
    for server in (_server, *_helpers.values()):
        server.close()


@contextlib.contextmanager
def forking() -> Iterator[None]:
    """Fork what `subprocess.Popen` would start, where that is possible."""
    global _server
    if not AVAILABLE:
        yield
        return
    _server = ForkServer()
    _helpers.update((module, ForkServer(_OF_HELPERS if module.startswith("trainer") else {})) for module in HELPERS)
    setattr(subprocess.Popen, "_execute_child", _execute_child)  # noqa: B010 - mypy knows no such method
    try:
        yield
    finally:
        setattr(subprocess.Popen, "_execute_child", _start_child)  # noqa: B010
    changed = _unusual(None, _server)
    assert not changed, f"{changed} changed: no command was forked any more (tests/conftest.py sets such in advance)"


def _execute_child(
    self: Any, args: Any, executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any, cwd: Any, env: Any,
    startupinfo: Any, creationflags: Any, shell: Any, p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int,
    errread: int, errwrite: int, restore_signals: Any, gid: Any, gids: Any, uid: Any, umask: Any,
    start_new_session: Any, process_group: Any,
) -> None:  # fmt: skip
    """Fork the command if the server can, else start it."""
    pipes = (p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
    special = executable is not None or preexec_fn or pass_fds or shell or umask != -1 or process_group != -1
    special = special or not close_fds or (gid, gids, uid) != (None, None, None)
    server = _server if _is_ours(args) else _helper_server(args)
    if not enabled or special or server is None or _unusual(env, server):
        _start_child(
            self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
            *pipes, restore_signals, gid, gids, uid, umask, start_new_session, process_group,
        )  # fmt: skip
        return
    sys.audit("subprocess.Popen", executable, args, cwd, env)
    order = {
        "args": list(map(os.fspath, args)),
        "cwd": os.fspath(cwd) if cwd is not None else os.getcwd(),
        "env": dict(os.environ if env is None else env),
        "session": bool(start_new_session),
    }
    handed = [file if file != -1 else number for number, file in enumerate((p2cread, c2pwrite, errwrite))]
    pid = server.fork(order, handed)
    if pid == NO_FORK:
        raise OSError("The server of forks could not fork; its words are above.")
    self.pid = pid
    self._child_created = True
    self._close_pipe_fds(*pipes)


def _is_ours(args: Any) -> bool:
    """Return whether the command is one of the modules, run by this Python."""
    if not isinstance(args, list | tuple) or not args or not all(isinstance(word, str | os.PathLike) for word in args):
        return False
    program, *words = map(os.fspath, args)
    if words[:1] == ["-P"]:
        words = words[1:]
    if program != PYTHON or len(words) < 2 or words[0] != "-m" or words[1] not in MODULES:
        return False
    # A launched trainer is known by its command line, whose words a fork tells by spaces.
    return words[2:3] != ["fit"] or not any(" " in word for word in words)


def _helper_server(args: Any) -> ForkServer | None:
    """Return the server that forks the helper which the command starts, if it does and there is one."""
    words = [word for word in map(str, args) if word != "-P"] if isinstance(args, list | tuple) else []
    return _helpers.get(words[2]) if words[:2] == [PYTHON, "-m"] and len(words) > 2 else None


@contextlib.contextmanager
def forking_of_qt() -> Iterator[None]:
    """Fork what a QProcess without arguments of `start` would start."""
    from PySide6.QtCore import QProcess

    start = QProcess.start
    client = str(Path(__file__).with_name("fork_client.py"))

    def start_or_fork(process: QProcess, *how: Any) -> None:
        command = [process.program(), *process.arguments()]
        variables = process.processEnvironment()
        environment = {name: variables.value(name) for name in variables.keys()} or None  # noqa: SIM118
        if enabled and not how and _is_ours(command) and not _unusual(environment, _server):
            process.setProgram(PYTHON)
            process.setArguments(["-I", "-S", client, _server.listens_at(), *command])
        start(process, *how)

    if not AVAILABLE:
        yield
        return
    QProcess.start = start_or_fork  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        QProcess.start = start  # type: ignore[method-assign]


def _unusual(env: Mapping[str, str] | None, server: ForkServer) -> set[str]:
    """Return what an environment has other than the server's of what is read at the start of a program."""
    wanted, ours = dict(os.environ if env is None else env), server.environment
    # Another folder of modules may hold what the server has looked for in vain.
    folders = {entry for entry in wanted.get("PYTHONPATH", "").split(os.pathsep) if entry}
    if not folders <= {str(ROOT), *sys.path}:
        return {"PYTHONPATH"}
    names = {name for name in wanted.keys() | ours.keys() if name.startswith(_READ_AT_START)}
    return {name for name in names.difference(_HANDED_OVER) if wanted.get(name) != ours.get(name)}


# -- the side that forks -----------------------------------------------------------------------------------------


def serve(connected: socket.socket, listening: socket.socket | None = None) -> None:
    """Fork a process for each order until nobody can ask any more."""
    waiting = [connected, *([listening] if listening else [])]
    while True:
        ready = _readable(waiting, 1.0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if listening in ready:
            client, _ = listening.accept()
            _fork_for(client, waiting)
            client.close()
        if connected in ready:
            content, files, *_ = socket.recv_fds(connected, _MESSAGE, 3)
            if not content:
                return
            connected.send(str(_forked(json.loads(content), files, connected)).encode())


def _readable(files: Sequence[socket.socket | int], timeout_s: float | None = None) -> list[socket.socket | int]:
    """Return which of the files can be read; `select.select` refuses numbers from 1024 on."""
    poll = select.poll()
    numbers = {file if isinstance(file, int) else file.fileno(): file for file in files}
    for number in numbers:
        poll.register(number, select.POLLIN)
    return [numbers[number] for number, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)]


def _forked(order: Mapping[str, Any], files: Sequence[int], connected: socket.socket) -> int:
    """Return the number of a fork of the parent's that runs the order, or `NO_FORK`."""
    try:
        _import_for(_words(order["args"]))
        gc.freeze()  # forks look through what they make, and share the pages of the rest
        child = fork_beside()
    except Exception:
        traceback.print_exc()
        child = NO_FORK
    if child == 0:
        connected.close()
        _become(order, files)
    for file in files:
        os.close(file)
    return child


def _fork_for(client: socket.socket, others: Sequence[socket.socket]) -> None:
    """Fork a process that forks the client's command, passes signals on, and tells the client how it ended."""
    try:
        content, files, *_ = socket.recv_fds(client, _MESSAGE, 3)
    except ConnectionError:
        return
    if not content:  # the client was ended before it asked: all that follow would find no server
        return
    order = json.loads(content)
    _import_for(_words(order["args"]))
    gc.freeze()
    if os.fork():
        for file in files:
            os.close(file)
        return
    try:
        for one in others:
            one.close()
        child = os.fork()
        if child == 0:
            client.close()
            _become(order, files)
        os.closerange(0, 3)
        for file in files:
            os.close(file)
        ended = os.pidfd_open(child)
        while ended not in (ready := _readable([client, ended])):
            if client in ready:
                told = client.recv(64)  # a signal; nothing, where the client is no more
                os.kill(child, int(told) if told else signal.SIGKILL)
                if not told:
                    break
        _, status, usage = os.wait4(child, 0)
        _tell_time(order["env"], usage.ru_utime + usage.ru_stime)
        with contextlib.suppress(OSError):
            client.send(str(status).encode())
    finally:
        os._exit(0)


def _tell_time(environment: Mapping[str, str], seconds: float) -> None:
    """Write what a program with this environment has used, which nobody sees who waits for the client."""
    if file := environment.get(TIMES_FILE):
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(json.dumps([environment[TIMES_OWNER], seconds]) + "\n")


def fork_beside() -> int:
    """Fork a child of this process's parent: 0 in the child, its number here."""
    libc, api = ctypes.PyDLL(None, use_errno=True), ctypes.pythonapi
    libc.pthread_self.restype = ctypes.c_void_p
    before = threading.get_native_id()
    api.PyOS_BeforeFork()
    child = libc.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child:
        api.PyOS_AfterFork_Parent()
        if child < 0:
            raise OSError(ctypes.get_errno(), "clone")
        return child
    _tell_libc(libc.pthread_self(), before)
    api.PyOS_AfterFork_Child()
    return 0


def _tell_libc(thread: int, before: int) -> None:
    """Write the number of this thread where the C library has that of the thread that was copied, as its fork does."""
    for offset in range(0, 1024, 4):
        known = ctypes.c_int.from_address(thread + offset)
        if known.value == before:
            known.value = os.getpid()
            return


def _words(args: Sequence[str]) -> list[str]:
    """Return the module and its words."""
    return list(args[args.index("-m") + 1 :])


def _import_for(words: Sequence[str]) -> None:
    """Import what the command needs, once for all that follow; nothing that starts a thread."""
    if words[0] in HELPERS:
        _import_helper(words[0])
        return
    import psutil

    import trainer.cli
    import trainer.store

    assert all((psutil, trainer.store))
    for module in pkgutil.iter_modules(trainer.cli.__path__, "trainer.cli."):
        importlib.import_module(module.name)
    importlib.import_module("trainer.__main__").argument_parser([])  # which imports the kinds of commands
    command = words[1] if words[0] == "trainer" and len(words) > 1 else ""
    if command in _HEADLESS:
        _import_charts()
    if command == "mcp":
        importlib.import_module("trainer.agents.mcp_server")
    if command in _TRAINED or words[0] != "trainer":
        _import_training()
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be lost by a fork"


def _import_helper(module: str) -> None:
    helper = importlib.import_module(module)
    if warm := getattr(helper, "warm", None):
        warm()
    if module != "trainer.untrusted.bounded.child":
        return
    import pyarrow.parquet

    import trainer.untrusted.bounded

    assert pyarrow.parquet
    for reader in pkgutil.iter_modules(trainer.untrusted.bounded.__path__, "trainer.untrusted.bounded."):
        importlib.import_module(reader.name)
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be lost by a fork"


def _import_charts() -> None:
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_pdf
    import matplotlib.backends.backend_svg
    import pyarrow.compute
    import pyarrow.parquet

    import trainer.projection
    from trainer.charts import registry

    assert all((matplotlib.backends, pyarrow.compute, trainer.projection))
    pyarrow.array([0])  # the first array looks for pandas
    for name in registry.names():
        registry.load(name)


def _import_training() -> None:
    if "trainer.training.fit" in sys.modules:
        return
    import numpy
    import pyarrow.parquet
    import torch
    import torch.distributed.launcher.api

    import trainer.server.handlers
    import trainer.training.agent
    import trainer.training.fit
    from trainer.data.scenes.grounds import piece
    from trainer.data.scenes.words import GROUNDS
    from trainer.evaluation import measure

    torch.set_num_threads(1)
    assert all((pyarrow.parquet, trainer.server.handlers, trainer.training.agent, trainer.training.fit, measure))
    # The first optimizer loads half of torch's compiler.
    module = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    pyarrow.array([0])  # the first array looks for pandas
    # Sheets of the grounds are painted once a process.
    for ground, seed in itertools.product(GROUNDS, range(8)):
        piece(ground, numpy.random.default_rng(seed), 8)


def _become(order: Mapping[str, Any], files: Sequence[int]) -> None:
    """Run the command of the order as the whole life of this process."""
    code: Any = 1
    try:
        if order["session"]:
            os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, max(files) + 64)
        _take_over(order)
        code = _run(order["args"])
    except BaseException:
        traceback.print_exc()
    finally:
        _leave(code)


def _take_over(order: Mapping[str, Any]) -> None:
    """Make environment, folder, path, signals and files those of the command."""
    environment: dict[str, str] = order["env"]
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(order["cwd"])
    named = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    here = [] if order["args"][1] == "-P" or environment.get("PYTHONSAFEPATH") else [order["cwd"]]
    if _words(order["args"])[0].startswith("tests."):
        here = [str(ROOT)]
    sys.path[:] = [*here, *named, *(entry for entry in sys.path if entry != str(ROOT))]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    through = bool(environment.get("PYTHONUNBUFFERED"))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _text(1, through, "strict")
    sys.stderr = _text(2, True, "backslashreplace")
    if environment.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    _show(order["args"])
    _helpers.clear()
    if _words(order["args"])[0] not in HELPERS:
        _be_asked()
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(int(environment.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))))


def _text(file: int, through: bool, errors: str) -> io.TextIOWrapper:
    binary = open(file, "wb", buffering=0, closefd=False) if through else open(file, "wb", closefd=False)  # noqa: SIM115
    lines = os.isatty(file) or errors != "strict"
    return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, write_through=through, line_buffering=lines)  # type: ignore[type-var]


def _show(args: Sequence[str]) -> None:
    """Write the command line over the server's, where the system reads it."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    line = b" ".join(map(os.fsencode, args)) + b"\0"
    if end - start <= len(line):
        return
    # What does not end in a zero byte is shown up to the first one, and its words are told by spaces.
    ctypes.memmove(start, line + b" " * (end - start - len(line)), end - start)


def _be_asked() -> None:
    """Fork a server for this process, from its state before the command."""
    global _server
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        ours.close()
        code = 1
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.environ.update(_ONE_THREAD)
            serve(theirs)
            code = 0
        finally:
            os._exit(code)
    theirs.close()
    _server = ForkServer()
    _server.use(ours)
    setattr(subprocess.Popen, "_execute_child", _execute_child)  # noqa: B010


def _run(args: Sequence[str]) -> Any:
    """Run `python -m MODULE WORD...` and return its exit status."""
    module, *words = _words(args)
    sys.modules.pop(module if module != "trainer" else "trainer.__main__", None)
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        return leaving.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def _leave(code: Any) -> None:
    """End this process as an interpreter ends: its threads, its functions of atexit, its texts."""
    try:
        if isinstance(code, str):
            sys.stderr.write(code + "\n")
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for text in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                text.flush()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))


def main() -> None:
    """Serve the process that started this one, and the clients of its address."""
    os.setpgid(0, 0)  # a Ctrl+C is for the tests, which close the socket when they end
    serve(*(socket.socket(fileno=int(word)) for word in sys.argv[1:3]))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
