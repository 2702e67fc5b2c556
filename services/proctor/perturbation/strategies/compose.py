"""Chains of strategies, and the registry of their names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

from proctor.domain.errors import BadInputError, PluginError, ProctorError
from proctor.domain.item import Item, Rejection
from proctor.domain.plugins import Origin
from proctor.domain.strategies import NO_VARIANT, STRATEGIES
from proctor.domain.trial import Trial
from proctor.perturbation.candidate import Candidate, Draft, Rewrite
from proctor.perturbation.strategies.base import EVERYTHING, Strategy
from proctor.perturbation.strategies.model.calls import (
    Answers,
    Calls,
    ModelRewrite,
    NoRewordingError,
    UnansweredError,
)
from proctor.perturbation.strategies.model.replies import REPEATED
from proctor.perturbation.strategies.rule import RuleStrategy
from proctor.text.normalise import normalise

Proposal = Candidate | Rejection | Trial
"""What came of one attempt: a candidate, the reason why there is none, or what the model must be asked first."""

#: On the digest of a rule in a chain: outcomes of before rules could be left out stand under other keys.
_WHERE_IT_FITS: Final = " where it fits"


class Chain:
    """Strategies applied one after the other.

    A strategy that rewords by rule is left out where it finds no place, as long as another rule of the chain finds one
    or a model rewords: most questions lack something that one rule or another needs, and a chain of three would reword
    next to none. Every other strategy (ready wordings, the options) must have an alternative, or the item gets no
    candidate: left out, it would leave something else than the suite asks for.
    """

    def __init__(self, strategies: Sequence[Strategy], origins: Mapping[str, Origin] | None = None) -> None:
        """
        Args:
            strategies: in the order in which they are applied.
            origins: the distributions of those that are plug-ins, by their names.
        """
        self._strategies = tuple(strategies)
        self._origins = origins or {}
        self.asks_a_model = any(strategy.calls for strategy in self._strategies)

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
        """The greatest intensity: the number of strategies. A candidate's level is how many of them changed it."""
        return len(self._strategies)

    def data_digests(self, item: Item) -> list[str]:
        """What each strategy draws on for this item, whose plug-in it is, and whether it may be left out of it."""
        alone = len(self._strategies) == 1
        return [
            strategy.data_digest(item)
            + (f" of {self._origins[strategy.name]}" if strategy.name in self._origins else "")
            + ("" if alone or not _may_be_left_out(strategy) else _WHERE_IT_FITS)
            for strategy in self._strategies
        ]

    def candidates(self, item: Item, *, seed: int, limit: int) -> list[Candidate]:
        """All candidates of a chain that asks no model, each different from the others; see `proposals`.

        Raises:
            ValueError: for a chain that asks one.
        """
        if self.asks_a_model:
            raise ValueError(f"{self.name} asks a model: see Chain.proposals")
        return [one for one in self.proposals(item, seed=seed, limit=limit, answers={}) if isinstance(one, Candidate)]

    def proposals(self, item: Item, *, seed: int, limit: int, answers: Answers) -> Iterator[Proposal]:
        """At most `limit` attempts, made one by one as they are taken.

        The k-th candidate takes every strategy's k-th alternative; a strategy with fewer than another begins
        again, so two options, which have but one other order, do not cap the number of wordings. Its level counts the
        strategies that changed something, and its provenance holds what they noted.

        A candidate that repeats an earlier one is left out where it cost nothing, and is a rejection where a model was
        asked for it; there, the same question with its options in another order is a repetition too.

        Args:
            item: the item to reword.
            seed: decides the alternatives and their order.
            limit: attempts at most.
            answers: what the model has said so far; without them, the first calls come out as trials.
        """
        alternatives = [self._rewrites(strategy, item, seed, limit) for strategy in self._strategies]
        if self._missing(alternatives) is not None:
            return
        present = [pair for pair in zip(self._strategies, alternatives, strict=True) if pair[1]]
        seen: set[Hashable] = set()
        for index in range(min(limit, max(len(rewrites) for _, rewrites in present))):
            calls = Calls(item.item_id, index, answers)
            try:
                chosen = [(strategy, rewrites[index % len(rewrites)]) for strategy, rewrites in present]
                candidate = self._candidate(item, chosen, calls)
            except UnansweredError as unanswered:
                yield unanswered.trial
                continue
            except NoRewordingError as none:
                yield Rejection(item_id=item.item_id, reason=none.reason, detail=none.detail)
                continue
            key = self._identity(candidate)
            if key not in seen:
                seen.add(key)
                yield candidate
            elif self.asks_a_model:
                detail = "the model's reply came to an earlier candidate's wording"
                yield Rejection(item_id=item.item_id, reason=REPEATED, detail=detail)

    def _rewrites(self, strategy: Strategy, item: Item, seed: int, limit: int) -> Sequence[Rewrite | ModelRewrite]:
        try:
            return strategy.rewrites(item, seed=seed, limit=limit)
        except Exception as error:
            self._say_whose(error, strategy, item)
            raise

    def _say_whose(self, error: Exception, strategy: Strategy, item: Item) -> None:
        """Raises PluginError in the place of what the code of a plug-in raised, and was not to raise."""
        said = isinstance(error, ProctorError | UnansweredError | NoRewordingError)
        if strategy.name in self._origins and not said:
            fault = f"the strategy {strategy.name!r} of {self._origins[strategy.name]} failed at item {item.item_id!r}"
            raise PluginError(f"{fault}: {type(error).__name__}: {error}", "mend that distribution") from error

    def _candidate(
        self, item: Item, rewrites: Sequence[tuple[Strategy, Rewrite | ModelRewrite]], calls: Calls
    ) -> Candidate:
        draft, level = Draft.of(item), 0
        for strategy, rewrite in rewrites:
            before = draft
            try:
                draft = rewrite.reword(draft, calls) if isinstance(rewrite, ModelRewrite) else rewrite(draft)
            except Exception as error:
                self._say_whose(error, strategy, item)
                raise
            level += draft != before
        return Candidate(draft.question, draft.choices, self.name, level, dict(draft.provenance), draft.labels)

    def _identity(self, candidate: Candidate) -> Hashable:
        if self.asks_a_model:
            return normalise(candidate.question)
        return (candidate.question, candidate.choices, candidate.labels)

    def nothing_for(self, item: Item, *, seed: int) -> tuple[str, str]:
        """Why there is no candidate: the first strategy that is missing says it."""
        missing = self._missing([self._rewrites(strategy, item, seed, 1) for strategy in self._strategies])
        return ("no_candidate", "no strategy changed the item") if missing is None else missing.nothing_for(item)

    def _missing(self, alternatives: Sequence[Sequence[Rewrite | ModelRewrite]]) -> Strategy | None:
        """The first strategy without an alternative that cannot be left out."""
        pairs = list(zip(self._strategies, alternatives, strict=True))
        reworded = any(rewrites and (_may_be_left_out(strategy) or strategy.calls) for strategy, rewrites in pairs)
        for strategy, rewrites in pairs:
            if not rewrites and not (reworded and _may_be_left_out(strategy)):
                return strategy
        return None


def _may_be_left_out(strategy: Strategy) -> bool:
    return isinstance(strategy, RuleStrategy)


def make_chain(name: str, builders: Mapping[str, Callable[[], Strategy]]) -> Chain:
    """The chain that a suite names, e.g. `wordings+option_shuffle`.

    Args:
        name: strategies joined by '+', in the order in which they are applied.
        builders: what this version can make, by name; called only for strategies that are asked for.

    Raises:
        BadInputError: for a strategy that does not exist, makes no variants, or is named twice.
    """
    names = name.split("+")
    for part in names:
        if part in builders:
            continue
        known = ", ".join(sorted(builders))
        if part in NO_VARIANT:
            raise BadInputError(
                f"perturbation_strategy {part!r} makes no variants: it {NO_VARIANT[part]}; for variants there are: "
                f"{known}"
            )
        raise BadInputError(
            f"perturbation_strategy {part!r} does not exist; there are: {known}; if a plug-in brings it, install that "
            "here"
        )
    twice = next((part for part in names if names.count(part) > 1), None)
    if twice is not None:
        raise BadInputError(f"perturbation_strategy {name!r} names {twice!r} twice; name it once")
    origins = {part: origin for part in names if (origin := STRATEGIES.origin(part)) is not None}
    return Chain([builders[part]() for part in names], origins)
