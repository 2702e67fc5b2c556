"""Which tests run side by side.

Whole stacks of servers are started in two rooms. Their files run one after the other in two lanes, beside the workers
that have everything else: all at the same time they would only wait for each other's starts, and one that began last
would end alone. On the cluster, what is about one release is one lane, in its order, and all else another.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from xdist.scheduler import LoadScopeScheduling

#: First what takes longest.
ROOMS: Final = (
    "cluster",
    "models",
    "end_to_end",
    "chaos",
    "integration",
    "fuzz",
    "browser",
    "charts",
    "hostile",
    "unit",
)
_STACKS: Final = ("end_to_end", "chaos")
_LANES: Final = 2
#: Files of the cluster's room that use the release, in the order in which they must run.
RELEASE: Final = ("test_walk", "test_upgrade", "test_scaling", "test_faults", "test_reach", "test_access", "test_gate",
                  "test_prometheus", "test_uninstall")  # fmt: skip


def room_of(path: str) -> str:
    """The folder below tests/ that a file, or the id of a test in it, is in."""
    return PurePosixPath(path.partition("::")[0]).parts[1]


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker a file at a time, or a lane."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return _lanes().get(file, file)


@cache
def _lanes() -> dict[str, str]:
    """The lane of each file that has one."""
    tests = Path(__file__).parent
    files = [path for room in _STACKS for path in sorted((tests / room).glob("test_*.py"))]
    found = {f"tests/{path.relative_to(tests)}": f"lane {place % _LANES}" for place, path in enumerate(files)}
    for path in (tests / "cluster").glob("test_*.py"):
        found[f"tests/{path.relative_to(tests)}"] = "the release" if path.stem in RELEASE else "beside the release"
    return found
