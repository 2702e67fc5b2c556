"""No module needs itself: neither at the top, nor inside of a function, nor for types alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import grimp


def circles(imports: Mapping[str, Set[str]]) -> Iterator[list[str]]:
    """Sets of modules each of which needs all the others, by Tarjan's algorithm (1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in sorted(imports[module]):
            if other not in number:
                yield from visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            at = stack.index(module)
            found = stack[at:]
            del stack[at:]
            if len(found) > 1:
                yield sorted(found)

    for module in sorted(imports):
        if module not in number:
            yield from visit(module)


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("proctor", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 500
    assert list(circles(imports)) == []


def test_a_circle_of_three_is_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str](), "e": {"a"}}
    assert list(circles(imports)) == [["a", "b", "c"]]
