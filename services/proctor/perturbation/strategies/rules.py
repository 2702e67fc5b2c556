"""The strategies that reword by rule, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.distractor import Distractor
from proctor.perturbation.strategies.entity_rename import EntityRename
from proctor.perturbation.strategies.formatting import Formatting
from proctor.perturbation.strategies.lexical import Lexical
from proctor.perturbation.strategies.number_words import NumberWords
from proctor.perturbation.strategies.syntactic import Syntactic
from proctor.perturbation.strategies.typo import Typo

#: Without `delete`, which leaves out what the answer depends on, and so makes no variant.
RULE_STRATEGIES: Final[Mapping[str, Callable[[], Strategy]]] = {
    "distractor": Distractor,
    "entity_rename": EntityRename,
    "format": Formatting,
    "lexical": Lexical,
    "number_words": NumberWords,
    "syntactic": Syntactic,
    "typo": Typo,
}
