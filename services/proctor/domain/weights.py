"""How it is known which weights answered.

None of it is proof against whoever runs the server: a digest that a server says can be a lie. `proven` rules out the
mistake, a digest that was written down once and is no longer, or never was, that of the files.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Weights(StrEnum):
    """What stands behind the digest of the weights, the best first."""

    PROVEN = "proven"
    """A backend of Proctor computed it from the files that it loaded, and says so in its answers."""
    DECLARED = "declared"
    """Somebody wrote it down: in a model's configuration, or in what a server or a plug-in says of itself."""
    UNKNOWN = "unknown"
    """Nobody at the endpoint says which weights it serves; the digest is the suite's."""

    @property
    def words(self) -> str:
        """For people, behind the digest."""
        return _WORDS[self]


_WORDS: Final = {
    Weights.PROVEN: "proven: computed from the files by the backend that answered",
    Weights.DECLARED: "declared by whoever runs the endpoint, and computed by nobody",
    Weights.UNKNOWN: "unknown: nothing at the endpoint says so",
}


def weights_known(said: Weights | None, *, reported: bool) -> Weights:
    """How weights are known, also where a Proctor of before there were kinds says only whether a digest was reported.

    What was reported then was mostly what stands in a configuration, so that it counts as declared.
    """
    return said or (Weights.DECLARED if reported else Weights.UNKNOWN)


def weakest(kinds: list[Weights]) -> Weights:
    """That of several servers which answer for one endpoint; of none it is unknown."""
    order = tuple(Weights)
    return max(kinds, key=order.index, default=Weights.UNKNOWN)


def of_all(kinds: Iterable[Weights | None]) -> Weights | None:
    """That of a version over the audits that count for it, the least; None where one of them does not say."""
    found = list(kinds)
    known = [kind for kind in found if kind is not None]
    return weakest(known) if known and len(known) == len(found) else None


def falls_short(known: Weights, wanted: Weights) -> bool:
    """Whether what is known is less than what is wanted."""
    order = tuple(Weights)
    return order.index(known) > order.index(wanted)
