"""How the items of one stream are reworded: settings and strategies, checked before the first item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from proctor.domain.errors import BadInputError
from proctor.domain.suite import MODEL_STRATEGIES, PerturbationSection
from proctor.formats.rewordings import MatchedRewordings, Rewording
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.imported import Imported
from proctor.perturbation.strategies.model.registry import ASKING_STRATEGIES
from proctor.perturbation.strategies.model.strategy import ModelStrategy, RewordingModel
from proctor.perturbation.strategies.option_relabel import OptionRelabel
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.rules import RULE_STRATEGIES
from proctor.perturbation.strategies.wordings import Wordings, load_wordings


class Recipe:
    """The settings of a stream, and its chain of strategies for each batch.

    Raises:
        BadInputError: for a strategy that does not exist, a benchmark that has no wordings, or a strategy that asks a
            model where the settings name none.
    """

    def __init__(self, settings: PerturbationSection, *, benchmark: str, bundle: Path) -> None:
        self.settings = settings

        @cache
        def wordings() -> Strategy:
            return Wordings(load_wordings(bundle, benchmark))

        def asking(name: str, strategy: Callable[[RewordingModel], ModelStrategy]) -> Callable[[], Strategy]:
            return lambda: strategy(RewordingModel.of(settings, name))

        self._builders: Mapping[str, Callable[[], Strategy]] = {
            **RULE_STRATEGIES,
            **{name: asking(name, strategy) for name, strategy in ASKING_STRATEGIES.items()},
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


def refuse_to_ask(settings: PerturbationSection, instead: str) -> None:
    """Refuse strategies that ask a model, where nothing is there to ask it.

    Args:
        settings: what names the strategies.
        instead: what works, in an imperative.

    Raises:
        BadInputError: naming the strategy, and what works.
    """
    asking = next((name for name in settings.perturbation_strategy.split("+") if name in MODEL_STRATEGIES), None)
    if asking is not None:
        raise BadInputError(
            f"perturbation_strategy {asking!r} asks a model, which is done by `proctor audit run` and `proctor "
            f"variants build` only: {instead}"
        )
