"""The strategies by name: what is known of one wherever a suite is read, without what rewords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from proctor.domain.errors import PluginError
from proctor.domain.plugins import ExtensionPoint

_HERE: Final = "proctor.perturbation.strategies"
#: Classes of strategies: `strategy_class` of the perturbation service says what they have to be.
STRATEGIES: Final[ExtensionPoint[type]] = ExtensionPoint(
    "proctor.strategies",
    "strategy",
    type,
    {
        "back_translation": f"{_HERE}.model.back_translation:BackTranslation",
        "distractor": f"{_HERE}.distractor:Distractor",
        "entity_rename": f"{_HERE}.entity_rename:EntityRename",
        "format": f"{_HERE}.formatting:Formatting",
        "forward_full": f"{_HERE}.model.instructed:ForwardFull",
        "imported": f"{_HERE}.imported:Imported",
        "lexical": f"{_HERE}.lexical:Lexical",
        "noisy_rewrite": f"{_HERE}.model.instructed:NoisyRewrite",
        "number_words": f"{_HERE}.number_words:NumberWords",
        "option_relabel": f"{_HERE}.option_relabel:OptionRelabel",
        "option_shuffle": f"{_HERE}.option_shuffle:OptionShuffle",
        "paraphrase_llm": f"{_HERE}.model.instructed:ParaphraseLlm",
        "syntactic": f"{_HERE}.syntactic:Syntactic",
        "typo": f"{_HERE}.typo:Typo",
        "wordings": f"{_HERE}.wordings:Wordings",
    },
)
#: Names of the field for what makes no variant, and what it makes instead.
NO_VARIANT: Final[Mapping[str, str]] = {
    "delete": "takes part of the question away, so its answer need not be the item's: it is for noisy routers",
    "symbolic": "makes fresh items with other numbers and other answers",
}
#: How often each built-in strategy that asks a model asks it for one rewording: to the other language, and back.
_CALLS: Final[Mapping[str, int]] = {"paraphrase_llm": 1, "back_translation": 2, "forward_full": 1, "noisy_rewrite": 1}
#: Built-in strategies that ask a model for their rewordings.
MODEL_STRATEGIES: Final = tuple(_CALLS)


class NamedStrategy:
    """What every strategy says of itself before it is made."""

    name: ClassVar[str]
    """The name under which suites ask for it."""
    calls: ClassVar[int] = 0
    """How often a model is asked for one rewording; 0 where none is."""


def named_strategy(name: str) -> type[NamedStrategy]:
    """The class of a strategy.

    Raises:
        PluginError: when there is no strategy of this name, or its plug-in does not bring what it should.
    """
    found = STRATEGIES.get(name)
    if issubclass(found, NamedStrategy) and getattr(found, "name", None) == name:
        return found
    said = "has another name" if issubclass(found, NamedStrategy) else "is no strategy"
    raise PluginError(
        f"the strategy {name!r} of {STRATEGIES.origin(name)} is the class {found.__name__}, which {said}",
        f"have its entry point in {STRATEGIES.group} name a subclass of Strategy whose name is {name!r}",
    )


def calls_for(name: str) -> int:
    """How often a strategy asks a model for one rewording; 0 where it asks none, and for what is no strategy.

    Raises:
        PluginError: when the strategy is a plug-in's, and cannot be loaded.
    """
    if name in STRATEGIES.built_in:
        return _CALLS.get(name, 0)
    return named_strategy(name).calls if name in STRATEGIES else 0
