"""How an item becomes a prompt. Questions and options are hostile text: they are put in, never interpreted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.suite import PromptSection

DEFAULT_TEMPLATE: Final = "Question: {question}\nAnswer:"
DEFAULT_CHOICE_TEMPLATE: Final = "Question: {question}\nOptions:\n{options}\nAnswer:"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLACE: Final = re.compile(r"\{(question|options)\}")


def render_prompt(section: PromptSection, question: str, choices: Sequence[str]) -> str:
    """The prompt of one question.

    `{question}` and `{options}` (one line "A. text" an option) are replaced in one pass over the template, so that
    braces in a question stay what they are. Solved examples come first, each in the same template followed by a
    space, its answer and a blank line; an example without options in a multiple-choice prompt uses the default
    template of its own kind.

    Raises:
        BadInputError: when the item has options and the suite's template does not show them.
    """
    examples = "".join(
        f"{_fill(_template(section, example.choices), example.question, example.choices)} {example.answer}\n\n"
        for example in section.few_shot
    )
    return examples + _fill(_template(section, choices), question, choices)


def option_lines(choices: Sequence[str]) -> str:
    """The options as a prompt shows them, one line each."""
    return "\n".join(f"{letter}. {choice}" for letter, choice in zip(_LETTERS, choices, strict=False))


def _template(section: PromptSection, choices: Sequence[str]) -> str:
    if section.template is None:
        return DEFAULT_CHOICE_TEMPLATE if choices else DEFAULT_TEMPLATE
    if choices and "{options}" not in section.template:
        raise BadInputError(
            f"prompt_config.template is {section.template[:80]!r}, which does not show the {len(choices)} options of "
            "a multiple-choice item: put {options} where they go"
        )
    return section.template


def _fill(template: str, question: str, choices: Sequence[str]) -> str:
    values = {"question": question, "options": option_lines(choices)}
    return _PLACE.sub(lambda match: values[match[1]], template)
