"""The strategies' classes, by name."""

from __future__ import annotations

from proctor.domain.errors import PluginError
from proctor.domain.strategies import STRATEGIES, named_strategy
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.rule import RuleStrategy


def strategy_class(name: str) -> type[Strategy]:
    """The class of a strategy, Proctor's own or a plug-in's.

    Raises:
        PluginError: when there is no strategy of this name, or its plug-in does not bring what it should.
    """
    found = named_strategy(name)
    if not issubclass(found, Strategy):
        raise PluginError(
            f"the strategy {name!r} of {STRATEGIES.origin(name)} is the class {found.__name__}, which does not say how "
            "it rewords",
            f"have its entry point in {STRATEGIES.group} name a subclass of Strategy",
        )
    return found


def rule_strategies() -> dict[str, type[RuleStrategy]]:
    """The strategies of Proctor's own that reword by rule, by name.

    Without `delete`, which leaves out what the answer depends on, and so makes no variant.
    """
    classes = {name: strategy_class(name) for name in STRATEGIES.built_in}
    return {name: found for name, found in classes.items() if issubclass(found, RuleStrategy)}
