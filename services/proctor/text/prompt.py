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


def prompt_bytes(
    section: PromptSection, question: str, choices: Sequence[str], labels: LabelScheme | None = None
) -> int:
    """How many bytes of UTF-8 `render_prompt` would make of the same, without making them.

    A template of 20,000 characters may hold the question 2,000 times.

    Raises:
        BadInputError: as `render_prompt`.
    """
    asked = _filled_bytes(_template(section, choices), question, choices, labels)
    return _examples_bytes(section, labels) + asked if section.few_shot else asked


def utf8_bytes(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=64)
def _examples_bytes(section: PromptSection, labels: LabelScheme | None) -> int:
    sizes = 0
    for example in section.few_shot:
        shown, answer = _as_shown(example, labels)
        filled = _filled_bytes(_template(section, example.choices), example.question, example.choices, shown)
        sizes += filled + utf8_bytes(answer) + len(" \n\n")
    return sizes


def _filled_bytes(template: str, question: str, choices: Sequence[str], labels: LabelScheme | None) -> int:
    text, questions, options = _sizes(template)
    shown = sum(utf8_bytes(line) + 1 for line in labelled(choices, labels)) - 1 if options and choices else 0
    return text + questions * utf8_bytes(question) + options * shown


@lru_cache(maxsize=64)
def _sizes(template: str) -> tuple[int, int, int]:
    """Bytes of a template's own text, and how often it shows the question and the options."""
    pieces = _pieces(template)
    places = pieces[1::2]
    return sum(map(utf8_bytes, pieces[::2])), places.count("question"), places.count("options")


@lru_cache(maxsize=64)
def _examples(section: PromptSection, labels: LabelScheme | None) -> str:
    """The solved examples, which are the same for every question of a suite."""
    return "".join([_example(section, example, labels) for example in section.few_shot])


def _example(section: PromptSection, example: FewShotExample, labels: LabelScheme | None) -> str:
    shown, answer = _as_shown(example, labels)
    asked = _fill(_template(section, example.choices), example.question, example.choices, shown)
    return f"{asked} {answer}\n\n"


def _as_shown(example: FewShotExample, labels: LabelScheme | None) -> tuple[LabelScheme | None, str]:
    """How an example's options are labelled, and its answer by those labels."""
    answer = example.answer
    if labels is not None and len(example.choices) > labels.most_options:
        labels = None
    if labels is not None:
        count = len(example.choices)
        labels_by_letter = dict(zip(marks(None, count), marks(labels, count), strict=True))
        answer = _ANSWERS_LETTER.sub(lambda found: labels_by_letter.get(found[0], found[0]), answer)
    return labels, answer


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
