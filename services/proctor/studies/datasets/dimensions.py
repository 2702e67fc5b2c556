"""The four capability dimensions of the article, how each is scored, and what makes its items."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from proctor.studies.datasets import facts, functions, instructions, reasoning
from proctor.studies.datasets.made import Template


class Dimension(NamedTuple):
    """One capability."""

    name: str
    asks: str
    scoring: str
    """The extractor by which answers are read, unless another is named."""
    extractors: tuple[str, ...]
    """Those that may be named."""
    templates: tuple[Template, ...]
    proves: str
    """What its templates measure, and what they do not."""


_TEXTS: Final = ("exact", "answer_phrase", "boxed", "article", "numeric", "choice_letter")
_NUMBERS: Final = ("numeric", "hash_marker", "last_number", *_TEXTS[:-1])

DIMENSIONS: Final[Mapping[str, Dimension]] = MappingProxyType(
    {
        one.name: one
        for one in (
            Dimension(
                "factual_recall",
                "Can the model recall specific facts?",
                "exact",
                _TEXTS,
                facts.TEMPLATES,
                "templates tell invented facts and ask for one of them: recall from what was just read, not of the "
                "world; "
                "facts of the world come from an annotated file",
            ),
            Dimension(
                "reasoning",
                "Can the model solve problems of several steps?",
                "numeric",
                tuple(dict.fromkeys(_NUMBERS)),
                reasoning.TEMPLATES,
                "templates make arithmetic word problems of three to five steps: no more than that of reasoning",
            ),
            Dimension(
                "code_generation",
                "Can the model write correct code?",
                "execution",
                ("execution",),
                functions.TEMPLATES,
                "templates ask for short Python functions by rules and examples; hidden tests try them, and no more "
                "than "
                "those",
            ),
            Dimension(
                "instruction_following",
                "Does the model follow complex instructions?",
                "constraints",
                ("constraints",),
                instructions.TEMPLATES,
                "templates ask for short texts under rules that a program can check; whether a text is any good is not "
                "looked at",
            ),
        )
    }
)
