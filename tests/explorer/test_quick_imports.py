"""Dataclasses that compile their methods late are those of Python."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from dataclasses import field
from typing import Any

import pytest

from explorer.event_loop.quick_imports import quicken_imports


def _classes() -> tuple[Any, ...]:
    """Return a frozen, an ordered, a mutable one, one of slots, and one that is derived, defined now."""

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: int
        y: tuple[int, ...] = ()
        z: str = field(default="z", repr=False, compare=False)

    @dataclasses.dataclass(order=True)
    class Ordered:
        x: int
        y: Any = None

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Slots:
        x: int

    @dataclasses.dataclass(frozen=True)
    class Derived(Frozen):
        more: float = 0.5

        def __repr__(self) -> str:
            return "own"

    return Frozen, Ordered, Slots, Derived


PLAIN = _classes()
CREATE = "_create_fn"


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return the same classes, defined while methods are compiled late."""
    if not hasattr(dataclasses, CREATE):
        pytest.skip("this Python compiles the methods of a class together")
    monkeypatch.setattr(dataclasses, CREATE, getattr(dataclasses, CREATE))
    quicken_imports()
    return _classes()


def test_they_print_compare_hash_and_refuse_as_those_of_python(late: tuple[Any, ...]) -> None:
    for plain, quick in zip(PLAIN, late, strict=True):
        seen = []
        for made in (plain, quick):
            one, same, other = made(x=1), made(x=1), made(x=2)
            told: list[object] = [repr(one).rpartition(".")[2], one == same, one == other, one == 1, one != same]
            told += [str(inspect.signature(made)), made.__hash__ is None, made.__eq__.__qualname__]
            told.append(dataclasses.replace(one, x=3) == made(x=3))
            told.append(copy.copy(one) == one)
            told.append(made.__hash__ is not None and hash(one) == hash(same))
            for act in (lambda one=one: setattr(one, "x", 5), lambda one=one: delattr(one, "x")):
                try:
                    told.append(act())
                except Exception as error:
                    told.append((type(error), str(error)))
            seen.append(told)
        assert seen[0] == seen[1], plain
    assert late[1](1, 2) < late[1](2, 1)
    cycle = late[1](1)
    cycle.y = cycle
    assert "..." in repr(cycle)


def test_methods_are_not_compiled_before_they_are_called(late: tuple[Any, ...]) -> None:
    by_python, quick = (made.__repr__.__wrapped__.__code__.co_filename for made in (PLAIN[0], late[0]))
    assert by_python == "<string>", "Python compiles a text"
    assert quick == sys.modules[quicken_imports.__module__].__file__


def test_an_instance_crosses_processes(late: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = late[0]
    frozen.__qualname__ = frozen.__name__
    monkeypatch.setattr(sys.modules[__name__], "Frozen", frozen, raising=False)
    assert pickle.loads(pickle.dumps(frozen(1, (2,)))) == frozen(1, (2,))


def test_beginning_twice_compiles_once(late: tuple[Any, ...]) -> None:
    before = getattr(dataclasses, CREATE)
    quicken_imports()
    assert getattr(dataclasses, CREATE) is before
