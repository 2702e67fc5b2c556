"""Kinds of benchmarks by what their items are, and the channels that a suite should require for each.

Memory of a short fact answers every wording of its question, so that other wordings are blind to it. Where the answer
is a letter, or has to be worked out, what is remembered is the wording, and a leak shows in others. That was measured
with leaks that were planted in a pre-trained model (`STUDY`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final

from proctor.domain.channels import ALWAYS_REQUIRED, BEYOND_WORDING

#: Where what was measured stands.
STUDY: Final = "docs/study.md"
#: Items of a kind by which a benchmark is of that kind.
_MOST: Final = 0.5


class ItemKind(StrEnum):
    """What an item's form tells of how it is answered."""

    OPTIONS = "options"
    """One of the options that are given."""
    SHORT_FACT = "short_fact"
    """An open question with a short answer that is not computed from numbers in the question."""
    COMPUTED = "computed"
    """A number, of a question that gives numbers."""
    OTHER = "other"
    """A longer answer to an open question."""


class BenchmarkKind(StrEnum):
    """What most of a benchmark's items are."""

    FACTS = "facts"
    """Short facts."""
    LETTERS = "letters"
    """Items with options, answered by a letter."""
    WORKED = "worked"
    """Answers that are worked out."""
    OTHER = "other"
    """Longer answers, or no kind that half of the items have."""


#: Kind of an item → that of a benchmark of such items, those first to which wordings are blind.
_OF_ITEMS: Final[Mapping[ItemKind, BenchmarkKind]] = {
    ItemKind.SHORT_FACT: BenchmarkKind.FACTS,
    ItemKind.OPTIONS: BenchmarkKind.LETTERS,
    ItemKind.COMPUTED: BenchmarkKind.WORKED,
}
#: What a suite requires that is laid out for a kind.
REQUIRED: Final[Mapping[BenchmarkKind, tuple[str, ...]]] = {
    kind: (*ALWAYS_REQUIRED, "fresh") if kind is BenchmarkKind.FACTS else ALWAYS_REQUIRED for kind in BenchmarkKind
}
_BESIDE: Final = (
    f"Fresh items beside it (fresh_config, and fresh in required_channels) say more: a model that was trained on "
    f"rewordings as well is found by them alone ({STUDY})."
)
#: Why a kind requires what it does.
ADVICE: Final[Mapping[BenchmarkKind, str]] = {
    BenchmarkKind.FACTS: "These items are short facts: memory of one answers every wording of it, so fresh items are "
    f"required (fresh_config), or a search of training data in their place (exposure_config; {STUDY}).",
    BenchmarkKind.LETTERS: "These items have options: a leak of lettered multiple choice shows in other wordings and "
    f"orders of the options, so perturbation is what is required. {_BESIDE}",
    BenchmarkKind.WORKED: "These items' answers are worked out: a leak of such shows in other wordings, so "
    f"perturbation is what is required. {_BESIDE}",
    BenchmarkKind.OTHER: "What these items are their form does not tell: for short facts require fresh or exposure, "
    f"because memory of one answers every wording of it ({STUDY}).",
}


def benchmark_kind(counts: Mapping[ItemKind, int]) -> BenchmarkKind:
    """The kind that half of a benchmark's items have, short facts before the others.

    Args:
        counts: items of each kind; one that is left out has none.
    """
    total = sum(counts.values())
    most = (kind for item, kind in _OF_ITEMS.items() if total and counts.get(item, 0) >= _MOST * total)
    return next(most, BenchmarkKind.OTHER)


def blind_to_memory(kind: BenchmarkKind, required: Collection[str]) -> str | None:
    """That a suite relies on wordings where these are blind, and what to require, as a clause; None where it does not.

    Args:
        kind: the benchmark's.
        required: the channels without which the suite approves nothing.
    """
    if kind is not BenchmarkKind.FACTS or set(required) & set(BEYOND_WORDING):
        return None
    return (
        "the suite relies on perturbation alone, and by their form its items are short facts, whose memory answers "
        "every wording: a leak of these can be approved. Name fresh items (fresh_config) or training data "
        "(exposure_config), and require fresh or exposure in scoring_config.required_channels; "
        f"{STUDY} has what was measured"
    )
