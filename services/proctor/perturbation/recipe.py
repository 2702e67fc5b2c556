"""How the items of one stream are reworded: settings and strategies, checked before the first item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

from proctor.domain.errors import BadInputError
from proctor.domain.strategies import STRATEGIES, calls_for
from proctor.domain.suite import PerturbationSection
from proctor.formats.rewordings import MatchedRewordings, Rewording
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.imported import Imported
from proctor.perturbation.strategies.registry import strategy_class
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

        self._wordings = wordings
        self.chain({})

    def chain(self, rewordings: Mapping[str, tuple[Rewording, ...]]) -> Chain:
        """The strategies, with the ready rewordings that came with a batch, by the identifier of their item."""

        def imported() -> Strategy:
            return Imported(MatchedRewordings(dict(rewordings), ()))

        builders = _Builders(self.settings, {"imported": imported, "wordings": self._wordings})
        return make_chain(self.settings.perturbation_strategy, builders)


class _Builders(Mapping[str, Callable[[], Strategy]]):
    """What makes each strategy that there is. Plug-ins are looked for only where a name is not one of Proctor's own.

    Args:
        settings: what strategies are made for.
        of_data: what makes those that need more than the settings.
    """

    def __init__(self, settings: PerturbationSection, of_data: Mapping[str, Callable[[], Strategy]]) -> None:
        self._settings = settings
        self._of_data = of_data

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in STRATEGIES

    def __getitem__(self, name: str) -> Callable[[], Strategy]:
        if name not in self:
            raise KeyError(name)
        return self._of_data.get(name) or partial(strategy_class(name).of, self._settings)

    def __iter__(self) -> Iterator[str]:
        return iter(STRATEGIES.names)

    def __len__(self) -> int:
        return len(STRATEGIES.names)


def refuse_to_ask(settings: PerturbationSection, instead: str) -> None:
    """Refuse strategies that ask a model, where nothing is there to ask it.

    Args:
        settings: what names the strategies.
        instead: what works, in an imperative.

    Raises:
        BadInputError: naming the strategy, and what works.
    """
    asking = next((name for name in settings.perturbation_strategy.split("+") if calls_for(name)), None)
    if asking is not None:
        raise BadInputError(
            f"perturbation_strategy {asking!r} asks a model, which is done by `proctor audit run` and `proctor "
            f"variants build` only: {instead}"
        )
