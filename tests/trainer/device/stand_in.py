"""One CUDA card that is not there: tensors say `cuda:0`, compute on the CPU, refuse mixed devices, and count waits.

CUDA's rule behind the count: the program waits for the card where it reads a value or a shape that depends on values,
and where it copies from memory that is not pinned. What composite kernels read inside of torch is not seen, nor are
kernels, speed, and what a card's own arithmetic rounds. Autograd asks CUDA for a context, which needs a driver, as soon
as it holds CUDA for the accelerator; `build_library` makes a library that denies this, to be loaded before torch.
"""

from __future__ import annotations

import collections
import contextlib
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

ATEN = torch.ops.aten
CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
WAITS: collections.Counter[tuple[str, str]] = collections.Counter()
"""(Kind, file and line) -> how often the program waited for the card."""
OPERATIONS: list[tuple[str, frozenset[torch.dtype], str]] = []
"""Name, types and line of operations on the card, as long as `traced` is entered."""

_DATA_DEPENDENT = {
    ATEN.nonzero.default, ATEN.masked_select.default, ATEN.equal.default, ATEN._unique2.default,
    ATEN.unique_dim.default, ATEN.unique_consecutive.default, ATEN.bincount.default, ATEN.repeat_interleave.Tensor,
    ATEN.is_nonzero.default, ATEN.multinomial.default,
}  # fmt: skip
_INDEXED = {
    ATEN.index.Tensor, ATEN.index_put_.default, ATEN.index_put.default, ATEN._index_put_impl_.default,
    ATEN._unsafe_index.Tensor,
}  # fmt: skip
_NO_SCALARS = {"cat", "stack", "mm", "addmm", "bmm", "index_select", "gather", "embedding"}
"""Operations that refuse even a tensor without dimensions of another device."""
_SOURCE = """
short _ZN2at11accelerator14getAcceleratorEb(char checked) { return 0; }
char _ZN2at11accelerator13isAcceleratorEN3c1010DeviceTypeE(signed char kind) { return 0; }
"""
_PlainGenerator = torch.Generator
_trace = [False]


def build_library(folder: Path, compiler: str) -> Path:
    """Return the library by which torch has no accelerator (`getAccelerator`, `isAccelerator`)."""
    source, library = folder / "no_accelerator.c", folder / "no_accelerator.so"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True, capture_output=True)
    return library


class CardTensor(Tensor):
    """A tensor that says `cuda:0`; `values` holds it on the CPU."""

    values: Tensor
    made: tuple[Stream, int]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, values: Tensor) -> CardTensor:
        outer = torch.Tensor._make_wrapper_subclass(
            cls, values.size(), strides=values.stride(), storage_offset=values.storage_offset(), dtype=values.dtype,
            layout=values.layout, device=CUDA,
        )  # fmt: skip
        outer.values = values
        _streams[-1].clock += 1
        outer.made = (_streams[-1], _streams[-1].clock)
        return outer

    def __reduce_ex__(self, protocol: int) -> Any:
        _wait("saved: read back")
        return self.values.detach().__reduce_ex__(protocol)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"CardTensor({self.values!r})"

    # With these two `nn.Module.to` swaps the parameters.
    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["values"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *_: Any) -> CardTensor:
        return CardTensor(inner["values"])

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def, override]
        return _computed(operation, args, kwargs or {})


class Generator(_PlainGenerator):
    """A generator that says where it draws; the dispatcher hands over another object, known by its address."""

    where: torch.device

    def __new__(cls, device: Any = "cpu") -> Generator:
        made = super().__new__(cls)
        made.where = torch.device(device)
        _generators[made._cdata] = made
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:
        return self.where


_generators: dict[int, Generator] = {}


def _draws_on_card(generator: torch.Generator) -> bool:
    known = _generators.get(generator._cdata)
    return known is not None and known.where.type == "cuda"


class Event:
    """An event of the card, which has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        pass

    wait = record

    def synchronize(self) -> None:
        _wait("synchronize")

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Event) -> float:
        return 1.0


class Stream(Event):
    """A stream that knows how much of which other streams it has waited for."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.clock = 0
        self.seen: dict[Stream, int] = {}

    def __deepcopy__(self, memo: Any) -> Stream:
        return self

    def wait_stream(self, other: Stream) -> None:
        self.seen[other] = other.clock

    def wait_event(self, event: Event) -> None:
        pass

    def record_event(self, *_: Any) -> Event:
        return Event()


_streams = [Stream()]
_warns = [False]
"""Whether waits are warned of, as torch does where it is asked to."""


class _Mode(TorchDispatchMode):
    """Brings to the card what is made there, beside what is computed with its tensors."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def, override]
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        if _is_cuda(kwargs.get("device")) or any(isinstance(leaf, CardTensor) for leaf in leaves):
            return _computed(operation, args, kwargs)
        if any(isinstance(leaf, _PlainGenerator) and _draws_on_card(leaf) for leaf in leaves):
            raise RuntimeError(f"a generator of cuda:0 for a tensor of the CPU, at {_line()}")
        return operation(*args, **kwargs)


@contextlib.contextmanager
def traced() -> Iterator[list[tuple[str, frozenset[torch.dtype], str]]]:
    """List the operations on the card."""
    OPERATIONS.clear()
    _trace[0] = True
    try:
        yield OPERATIONS
    finally:
        _trace[0] = False


@contextlib.contextmanager
def card(*, bfloat16: bool = False, memory: int = 16 << 30) -> Iterator[None]:
    """Let torch have one card.

    Args:
        bfloat16: Whether it computes in bfloat16, and not in float32 alone.
        memory: Bytes, all of them free.
    """
    _streams[:] = [Stream()]
    torch._C._ensureCUDADeviceGuardSet()
    torch._C._set_only_lift_cpu_tensors(True)
    with contextlib.ExitStack() as stack:
        stack.callback(torch._C._set_only_lift_cpu_tensors, False)
        for owner, name, value in _replacements(bfloat16, memory):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))
        stack.enter_context(_Mode())
        yield


def _replacements(bfloat16: bool, memory: int) -> list[tuple[Any, str, Any]]:
    """Return owner, name and value of what asks a driver, or reads a tensor without the dispatcher."""
    cuda: dict[str, Any] = {
        "is_available": lambda: True, "_lazy_init": lambda: None, "device_count": lambda: 1,
        "current_device": lambda: 0, "is_initialized": lambda: False,
        "is_bf16_supported": lambda including_emulation=True: bfloat16 or including_emulation,
        "mem_get_info": lambda *_: (memory, memory), "memory_allocated": lambda *_: 0,
        "max_memory_allocated": lambda *_: 0, "reset_peak_memory_stats": lambda *_: None, "empty_cache": lambda: None,
        "Stream": Stream, "Event": Event, "current_stream": lambda *_: _streams[-1], "stream": _on_stream,
        "set_sync_debug_mode": lambda mode: _warns.__setitem__(0, mode == "warn"),
        "synchronize": lambda *_: _wait("synchronize"), "manual_seed": lambda _: None,
        "manual_seed_all": lambda _: None,
        "get_device_name": lambda *_: "stand-in", "get_device_capability": lambda *_: (9, 0),
        "get_rng_state": lambda *_: torch.get_rng_state(), "set_rng_state": lambda *_: None,
        "get_rng_state_all": lambda: [], "set_rng_state_all": lambda _: None,
    }  # fmt: skip
    tensors = {
        "pin_memory": _pinned, "tolist": _listed(Tensor.tolist), "record_stream": lambda *_: None,
    }  # fmt: skip
    return [
        *((torch.cuda, name, value) for name, value in cuda.items()),
        *((Tensor, name, value) for name, value in tensors.items()),
        (torch, "Generator", Generator),
        (torch, "empty_like", _pinned_like(torch.empty_like)),
        (torch.backends.cudnn, "enabled", False),
        # Wrappers know no inference mode.
        (torch.autograd.grad_mode.inference_mode, "__enter__", _enter_no_grad),
        (torch.autograd.grad_mode.inference_mode, "__exit__", lambda mode, *problem: mode.inner.__exit__(*problem)),
    ]


def _enter_no_grad(mode: Any) -> None:
    mode.inner = torch.no_grad()
    mode.inner.__enter__()


@contextlib.contextmanager
def _on_stream(stream: Stream) -> Iterator[None]:
    _streams.append(stream)
    try:
        yield
    finally:
        _streams.pop()


def _pinned(tensor: Tensor) -> Tensor:
    if isinstance(tensor, CardTensor):
        raise RuntimeError("cannot pin a tensor of the card")
    copied = tensor.clone()
    copied.pinned = True  # type: ignore[attr-defined]
    return copied


def _pinned_like(empty_like: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def made(tensor: Tensor, *, pin_memory: bool = False, **options: Any) -> Tensor:
        empty = empty_like(tensor, **options)
        if pin_memory:
            empty.pinned = True  # type: ignore[attr-defined]
        return empty

    return made


def _listed(tolist: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    def read(tensor: Tensor) -> Any:
        if not isinstance(tensor, CardTensor):
            return tolist(tensor)
        _wait("tolist")
        return tolist(tensor.values)

    return read


def _line() -> str:
    """Return file and line of the trainer's code that is running."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if "/trainer/" in name and "/tests/" not in name and "site-packages" not in name:
            return f"{name[name.rindex('/trainer/') + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "?"


def _wait(kind: str) -> None:
    WAITS[kind, _line()] += 1
    if _warns[0]:
        warnings.warn("called a synchronizing CUDA operation", stacklevel=2)


def _is_cuda(device: Any) -> bool:
    return device is not None and torch.device(device).type == "cuda"


def opened(leaf: Any) -> Any:
    return leaf.values if isinstance(leaf, CardTensor) else leaf


def _closed(leaf: Any) -> Any:
    return CardTensor(leaf) if isinstance(leaf, Tensor) and not isinstance(leaf, CardTensor) else leaf


def _computed(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an operation that has to do with the card."""
    name = operation._schema.name.split("::")[1]
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    on = [tensor for tensor in tensors if isinstance(tensor, CardTensor)]
    if operation is ATEN._to_copy.default:
        return _moved(operation, args[0], kwargs)
    if operation is ATEN.copy_.default:
        return _filled(operation, args, kwargs)
    _check_devices(operation, name, args, on, [tensor for tensor in tensors if not isinstance(tensor, CardTensor)])
    _check_streams(name, on)
    _count(operation, name, args, on)
    if name == "_fused_sdp_choice":
        return 0  # the mathematics of attention, which the CPU has, too
    if name == "record_stream":
        return None
    target = kwargs.get("device")
    becomes = bool(on) if target is None else _is_cuda(target)
    plain = kwargs if target is None else dict(kwargs, device=CPU)
    _check_generators(name, args, kwargs)
    result = _by_cpu(operation, name, *tree_map(opened, (args, plain)))
    if not becomes or name == "_local_scalar_dense":
        return result
    if _trace[0]:
        OPERATIONS.append((name, frozenset(tensor.dtype for tensor in on), _line()))
    result = tree_map(_closed, result)
    return return_and_correct_aliasing(operation, args, kwargs, result) if on else result


def _moved(operation: Any, source: Tensor, kwargs: dict[str, Any]) -> Tensor:
    target = kwargs.get("device")
    was = isinstance(source, CardTensor)
    becomes = was if target is None else _is_cuda(target)
    if was and not becomes:
        _wait("read back")
    if becomes and not was and not (kwargs.get("non_blocking") and getattr(source, "pinned", False)):
        _wait("upload from pageable memory")
    result = operation(opened(source), **(kwargs if target is None else dict(kwargs, device=CPU)))
    return _closed(result) if becomes else result


def _filled(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    target, source, *rest = args
    free = bool((rest and rest[0]) or kwargs.get("non_blocking"))
    onto, out = isinstance(target, CardTensor), isinstance(source, CardTensor)
    if onto and not out and source.dim() and not (free and getattr(source, "pinned", False)):
        _wait("upload from pageable memory")
    if out and not onto and not (free and getattr(target, "pinned", False)):
        _wait("read back")
    operation(opened(target), opened(source), *rest, **kwargs)
    return target


def _check_devices(operation: Any, name: str, args: tuple[Any, ...], on: list[CardTensor], off: list[Tensor]) -> None:
    if not on or not off or name == "set_":
        return
    wrong = [tensor for tensor in off if tensor.dim() or name in _NO_SCALARS or name.startswith("_foreach")]
    if operation in _INDEXED and isinstance(args[0], CardTensor):
        if any(isinstance(index, Tensor) and not isinstance(index, CardTensor) for index in args[1]):
            _wait("index on the CPU, uploaded")
        wrong = [tensor for tensor in args[2:3] if not isinstance(tensor, CardTensor) and tensor.dim()]
    if wrong:
        raise RuntimeError(f"{name}: tensors on cuda:0 and on the CPU, at {_line()}")


def _check_streams(name: str, on: list[CardTensor]) -> None:
    now = _streams[-1]
    for tensor in on:
        stream, clock = getattr(tensor, "made", (now, 0))
        if stream is not now and now.seen.get(stream, -1) < clock:
            raise RuntimeError(f"{name} reads what another stream may not have made yet, at {_line()}")


def _count(operation: Any, name: str, args: tuple[Any, ...], on: list[CardTensor]) -> None:
    if not on:
        return
    if operation in _DATA_DEPENDENT:
        _wait(f"{name}: depends on values")
    if operation in _INDEXED and any(
        index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1]
    ):
        _wait("mask as an index")
    if operation in _INDEXED and len(args) > 2 and not args[2].dim():
        _wait("number assigned by indices")  # as a card was seen to: there it is copied from the computer's memory
    if name == "_local_scalar_dense":
        _wait("item")


def _check_generators(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for leaf in tree_leaves((args, kwargs)):
        if isinstance(leaf, _PlainGenerator) and not _draws_on_card(leaf):
            raise RuntimeError(f"{name}: a generator of the CPU for a tensor of cuda:0, at {_line()}")


def _by_cpu(operation: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute on the CPU, which has no kernels that widen as they compute."""
    if name in ("_softmax", "_log_softmax") and args[2]:
        return operation(args[0].float(), args[1], False)
    if operation is ATEN.mm.dtype:
        return ATEN.mm.default(args[0].to(args[2]), args[1].to(args[2]))
    if name in ("_softmax_backward_data", "_log_softmax_backward_data") and args[3] != args[0].dtype:
        return operation(*args[:3], args[0].dtype).to(args[3])
    return operation(*args, **kwargs)
