"""Chains of strategies, and the registry of their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.perturbation.candidate import Candidate, Draft
from proctor.perturbation.strategies.base import EVERYTHING, Strategy

#: Names of the field that suites may carry and that this version does not build.
LATER: Final = (
    "back_translation",
    "forward_full",
    "noisy_rewrite",
    "option_relabel",
    "paraphrase_llm",
)
#: Names of the field for what makes no variant, and what it makes instead.
NO_VARIANT: Final = {
    "delete": "takes part of the question away, so its answer need not be the item's: it is for noisy routers",
    "symbolic": "makes fresh items with other numbers and other answers",
}


class Chain:
    """Strategies applied one after the other; each candidate changes by every one of them."""

    def __init__(self, strategies: Sequence[Strategy]) -> None:
        self._strategies = tuple(strategies)

    @property
    def name(self) -> str:
        """The strategies' names joined by '+'."""
        return "+".join(strategy.name for strategy in self._strategies)

    @property
    def preserves(self) -> frozenset[str]:
        """What all of the strategies leave as it is."""
        return EVERYTHING.intersection(*(strategy.preserves for strategy in self._strategies))

    @property
    def level(self) -> int:
        """Intensity: the number of strategies."""
        return len(self._strategies)

    def data_digests(self, item: Item) -> list[str]:
        """What each strategy draws on for this item."""
        return [strategy.data_digest(item) for strategy in self._strategies]

    def candidates(self, item: Item, *, seed: int, limit: int) -> list[Candidate]:
        """At most `limit` candidates, each different from the others.

        The k-th candidate takes every strategy's k-th alternative; a strategy with fewer than another begins
        again, so two options, which have but one other order, do not cap the number of wordings.
        """
        alternatives = [strategy.rewrites(item, seed=seed, limit=limit) for strategy in self._strategies]
        if not all(alternatives):
            return []
        found: dict[tuple[str, tuple[str, ...]], Candidate] = {}
        for index in range(min(limit, max(map(len, alternatives)))):
            draft = Draft.of(item)
            for rewrites in alternatives:
                draft = rewrites[index % len(rewrites)](draft)
            candidate = Candidate(draft.question, draft.choices, self.name, self.level, dict(draft.provenance))
            found.setdefault((draft.question, draft.choices), candidate)
        return list(found.values())

    def nothing_for(self, item: Item, *, seed: int) -> tuple[str, str]:
        """Why there is no candidate: the first strategy without an alternative says it."""
        for strategy in self._strategies:
            if not strategy.rewrites(item, seed=seed, limit=1):
                return strategy.nothing_for(item)
        return "no_candidate", "no strategy changed the item"


def make_chain(name: str, builders: Mapping[str, Callable[[], Strategy]]) -> Chain:
    """The chain that a suite names, e.g. `wordings+option_shuffle`.

    Args:
        name: strategies joined by '+', in the order in which they are applied.
        builders: what this version can make, by name; called only for strategies that are asked for.

    Raises:
        BadInputError: for a strategy that does not exist, is not in this version, makes no variants, or is named
            twice.
    """
    names = name.split("+")
    known = ", ".join(sorted(builders))
    for part in names:
        if part in builders:
            continue
        if part in LATER:
            raise BadInputError(
                f"perturbation_strategy {part!r} is not in this version (there are: {known}); make the rewordings "
                "with a tool of your own and use 'imported' with rewordings_path, a JSONL file of them"
            )
        if part in NO_VARIANT:
            raise BadInputError(
                f"perturbation_strategy {part!r} makes no variants: it {NO_VARIANT[part]}; for variants there are: "
                f"{known}"
            )
        raise BadInputError(f"perturbation_strategy {part!r} does not exist; there are: {known}")
    twice = next((part for part in names if names.count(part) > 1), None)
    if twice is not None:
        raise BadInputError(f"perturbation_strategy {name!r} names {twice!r} twice; name it once")
    return Chain([builders[part]() for part in names])
