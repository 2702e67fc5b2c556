"""What a template makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from proctor.perturbation.strategies.draws import Draws


class Made(NamedTuple):
    """One problem with its answer."""

    question: str
    target: str
    known_good: str
    """An answer that the dimension's grader takes for right: by it the problem is known to have one."""
    solution: str = ""
    """Worked steps, where there are any; kept with the item."""


class Template(NamedTuple):
    """A named way to make problems; its version is part of the name, because another one makes others of a seed."""

    name: str
    make: Callable[[Draws], Made | None]
    """A problem, or None where these draws give none that is any good."""
