"""How the items of one stream are reworded: settings and strategies, checked before the first item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from proctor.domain.suite import PerturbationSection
from proctor.formats.rewordings import MatchedRewordings, Rewording
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.imported import Imported
from proctor.perturbation.strategies.option_relabel import OptionRelabel
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.rules import RULE_STRATEGIES
from proctor.perturbation.strategies.wordings import Wordings, load_wordings


class Recipe:
    """The settings of a stream, and its chain of strategies for each batch.

    Raises:
        BadInputError: for a strategy that does not exist, or a benchmark that has no wordings.
    """

    def __init__(self, settings: PerturbationSection, *, benchmark: str, bundle: Path) -> None:
        self.settings = settings

        @cache
        def wordings() -> Strategy:
            return Wordings(load_wordings(bundle, benchmark))

        self._builders: Mapping[str, Callable[[], Strategy]] = {
            **RULE_STRATEGIES,
            "option_relabel": OptionRelabel,
            "option_shuffle": OptionShuffle,
            "wordings": wordings,
        }
        self.chain({})

    def chain(self, rewordings: Mapping[str, tuple[Rewording, ...]]) -> Chain:
        """The strategies, with the ready rewordings that came with a batch, by the identifier of their item."""

        def imported() -> Strategy:
            return Imported(MatchedRewordings(dict(rewordings), ()))

        return make_chain(self.settings.perturbation_strategy, {**self._builders, "imported": imported})
