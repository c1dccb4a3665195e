"""There are no import cycles, direct or indirect: lower modules can be read without higher ones."""

from collections.abc import Iterable, Mapping

import grimp


def loops(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return groups of modules that reach each other (Tarjan's strongly connected components of more than one)."""
    place: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        place[name] = lowest[name] = len(place)
        waiting.append(name)
        for other in imports.get(name, ()):
            if other not in place:
                visit(other)
            if other in waiting:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == place[name]:
            group = waiting[waiting.index(name) :]
            del waiting[waiting.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in imports:
        if name not in place:
            visit(name)
    return found


def test_a_planted_loop_is_found():
    assert loops({"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": []}) == [["b", "c"]]


def test_no_files_import_each_other():
    graph = grimp.build_graph("explorer", "trainer", cache_dir=None)
    assert not loops({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
