"""Extractors by name: what an answer says, and whether that is the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, Protocol

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.labels import LabelScheme
from proctor.grading.letters import chosen_option, normalised
from proctor.grading.numbers import final_number, number_text, whole_number_text


class Extract(Protocol):
    """How an answer is read."""

    def __call__(self, text: str, choices: tuple[str, ...], labels: LabelScheme | None = None, /) -> str | None:
        """The answer that a text gives, or None where none can be read.

        Args:
            text: what the model answered.
            choices: the options in the order shown.
            labels: how they were labelled; None for A, B, C, ….
        """
        ...


class Extractor(NamedTuple):
    """A named way to read an answer."""

    name: str
    extract: Extract
    agrees: Callable[[str, str], bool]
    """(extracted, target) -> whether the answer is right."""


@lru_cache(maxsize=4096)  # every trial of an item asks for its target's, and they come close together
def target_number(target: str) -> Fraction | None:
    """The number that a target is, or that a worked solution (GSM8K's `#### 18`) ends in; None where it is text."""
    return final_number(target) if "####" in target else whole_number_text(target)


def _number_in(text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> str | None:
    value = final_number(text)
    return None if value is None else number_text(value)


def _is_number(extracted: str, target: str) -> bool:
    return _target_text(target) == extracted


@lru_cache(maxsize=4096)
def _target_text(target: str) -> str | None:
    value = target_number(target)
    return None if value is None else number_text(value)


def _whole_text(text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> str | None:
    return normalised(text) or None


EXTRACTORS: Mapping[str, Extractor] = MappingProxyType(
    {
        extractor.name: extractor
        for extractor in (
            Extractor("choice_letter", chosen_option, lambda extracted, target: extracted == target),
            Extractor("numeric", _number_in, _is_number),
            Extractor("exact", _whole_text, lambda extracted, target: extracted == normalised(target)),
        )
    }
)


def resolve_extractor(name: str, items: Iterable[Item]) -> Extractor:
    """The extractor of a suite's `metric_config.extractor`, checked against the items that it is to read.

    `auto` is `choice_letter` for multiple choice, `numeric` where every target is a number, else `exact`. The items
    are gone through once, to the end.

    Raises:
        BadInputError: for an unknown name, for items of which only some have options, and for an item that the
            named extractor could never grade.
    """
    n_items = n_without_choices = 0
    without_choices: Item | None = None
    without_number: Item | None = None
    for item in items:
        n_items += 1
        if not item.choices:
            n_without_choices += 1
            without_choices = without_choices or item
        elif name == "auto":
            continue
        if without_number is None and target_number(item.target) is None:
            without_number = item
    if name == "auto":
        if without_choices is not None and n_without_choices < n_items:
            raise BadInputError(
                f"metric_config.extractor 'auto': {n_without_choices} of {n_items} items have no options "
                f"(first: {without_choices.item_id!r}); audit the two kinds in two suites, or name an extractor"
            )
        if n_items and without_choices is None:
            return EXTRACTORS["choice_letter"]
        return EXTRACTORS["numeric" if without_number is None else "exact"]
    if name not in EXTRACTORS:
        raise BadInputError(f"metric_config.extractor {name!r} is unknown; use auto, {', '.join(EXTRACTORS)}")
    if name == "choice_letter" and without_choices is not None:
        raise BadInputError(
            f"metric_config.extractor 'choice_letter': item {without_choices.item_id!r} has no options; "
            "name the column of the options in dataset_config.choices_field, or use numeric or exact"
        )
    if name == "numeric" and without_number is not None:
        raise BadInputError(
            f"metric_config.extractor 'numeric': the target {without_number.target[:80]!r} of item "
            f"{without_number.item_id!r} is not a number; use exact, or name the right column in "
            "dataset_config.target_field"
        )
    return EXTRACTORS[name]
