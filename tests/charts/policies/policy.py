"""A policy: a sentence that holds for every release, and the function that says where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tests.charts.rendering import Release

Check = Callable[[Release], Iterator[str]]


class Policy(NamedTuple):
    """A rule that charts are held to."""

    name: str
    sentence: str
    faults: Check


#: Every policy by its name, filled as the modules beside this one are imported (`every.py`).
POLICIES: Final[dict[str, Policy]] = {}


def policy(check: Check) -> Check:
    """Make a policy of a function that yields the faults of a release; its docstring is the sentence."""
    name, sentence = str(check.__name__), (check.__doc__ or "").strip()
    assert sentence, f"{name} does not say what holds"
    assert name not in POLICIES, f"two policies are called {name}"
    POLICIES[name] = Policy(name, sentence, check)
    return check
