"""How an item becomes a prompt. Questions and options are hostile text: they are put in, never interpreted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.labels import LabelScheme, labelled, marks
from proctor.domain.suite import FewShotExample, PromptSection

DEFAULT_TEMPLATE: Final = "Question: {question}\nAnswer:"
DEFAULT_CHOICE_TEMPLATE: Final = "Question: {question}\nOptions:\n{options}\nAnswer:"
_PLACE: Final = re.compile(r"\{(question|options)\}")
#: Where a solved example gives a letter: alone, before the option's text, in brackets or bold, or as the last word.
_ANSWERS_LETTER: Final = re.compile(r"^[A-Z](?=[.):]|\s*$)|(?<=[(*])[A-Z](?=[)*])|\b[A-Z](?=[.)*\s]*$)")


def render_prompt(
    section: PromptSection, question: str, choices: Sequence[str], labels: LabelScheme | None = None
) -> str:
    """The prompt of one question.

    `{question}` and `{options}` (one line "A. text" an option, or with the labels asked for) are replaced in one pass
    over the template, so that braces in a question stay what they are. Solved examples come first, each in the same
    template followed by a space, its answer and a blank line; an example without options in a multiple-choice prompt
    uses the default template of its own kind. Examples with options are labelled like the question, because a model
    copies the labels that it is shown, and the letter that such an example answers with (alone, before the option's
    text, in brackets or bold, or as the last word) becomes the label in its place.

    Raises:
        BadInputError: when the item has options and the suite's template does not show them.
    """
    asked = _fill(_template(section, choices), question, choices, labels)
    return _examples(section, labels) + asked if section.few_shot else asked


@lru_cache(maxsize=64)
def _examples(section: PromptSection, labels: LabelScheme | None) -> str:
    """The solved examples, which are the same for every question of a suite."""
    return "".join([_example(section, example, labels) for example in section.few_shot])


def _example(section: PromptSection, example: FewShotExample, labels: LabelScheme | None) -> str:
    answer = example.answer
    if labels is not None and len(example.choices) > labels.most_options:
        labels = None
    if labels is not None:
        count = len(example.choices)
        labels_by_letter = dict(zip(marks(None, count), marks(labels, count), strict=True))
        answer = _ANSWERS_LETTER.sub(lambda found: labels_by_letter.get(found[0], found[0]), answer)
    asked = _fill(_template(section, example.choices), example.question, example.choices, labels)
    return f"{asked} {answer}\n\n"


def _template(section: PromptSection, choices: Sequence[str]) -> str:
    if section.template is None:
        return DEFAULT_CHOICE_TEMPLATE if choices else DEFAULT_TEMPLATE
    if choices and "{options}" not in section.template:
        raise BadInputError(
            f"prompt_config.template is {section.template[:80]!r}, which does not show the {len(choices)} options of "
            "a multiple-choice item: put {options} where they go"
        )
    return section.template


def _fill(template: str, question: str, choices: Sequence[str], labels: LabelScheme | None) -> str:
    pieces = _pieces(template)
    # Every second one is the name of a place.
    options = "\n".join(labelled(choices, labels)) if "options" in pieces[1::2] else ""
    filled = [question if place == "question" else options for place in pieces[1::2]]
    return pieces[0] + "".join([value + text for value, text in zip(filled, pieces[2::2], strict=True)])


@lru_cache(maxsize=64)
def _pieces(template: str) -> tuple[str, ...]:
    """The texts of a template and between them the names of its places."""
    return tuple(_PLACE.split(template))
