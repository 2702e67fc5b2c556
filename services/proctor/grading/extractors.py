"""Extractors by name: what an answer says, and whether that is the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from proctor.domain.errors import BadInputError, CodeExecutionError
from proctor.domain.item import Item
from proctor.domain.labels import LabelScheme
from proctor.domain.trial import Outcome
from proctor.grading.constraints import Constraint, checked, is_constraints, parse_constraints
from proctor.grading.letters import chosen_option, names_option, normalised
from proctor.grading.numbers import boxed, final_number, number_text, plain_notation, whole_number_text
from proctor.grading.phrases import after_answer, as_the_article, behind_hashes, flexible_number
from proctor.grading.programs import code_in, is_tests, parse_tests


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
    judge: Callable[[str, str], Outcome] | None = None
    """(extracted, target) -> what the answer is worth, in place of `agrees`, where judging can fail to come to a
    result."""
    settled: Callable[[str, tuple[str, ...], LabelScheme | None], bool] | None = None
    """(text, choices, labels) -> whether the answer stands whatever follows the text, where trying does not tell."""


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


def _number_read(read: Callable[[str], Fraction | None]) -> Extract:
    def extract(text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> str | None:
        value = read(text)
        return None if value is None else number_text(value)

    return extract


def _text_read(read: Callable[[str], str | None]) -> Extract:
    def extract(text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> str | None:
        return read(text) or None

    return extract


def _phrase(text: str) -> str | None:
    found = after_answer(text)
    return None if found is None else normalised(found)


def _last_box(text: str) -> str | None:
    boxes = boxed(plain_notation(text))
    return normalised(boxes[-1]) if boxes else None


def _is_text_or_number(extracted: str, target: str) -> bool:
    """Whether two texts are the same, or the same number in two notations."""
    if extracted == normalised(target):
        return True
    wanted = target_number(target)
    return wanted is not None and whole_number_text(extracted) == wanted


@lru_cache(maxsize=4096)
def _constraints(target: str) -> tuple[Constraint, ...]:
    return parse_constraints(target)


def _keeps_all(extracted: str, target: str) -> bool:
    return all(checked(extracted, _constraints(target)))


def _not_run(extracted: str, target: str) -> bool:
    raise CodeExecutionError(
        "an answer that is code can only be judged by running it, which nothing does here: the scorer does, where "
        "PROCTOR_CODE_EXECUTION=sandbox"
    )


def executing(extractor: Extractor, judge: Callable[[str, str], Outcome]) -> Extractor:
    """The extractor `execution` with what judges code by its tests; any other as it is."""
    return extractor._replace(judge=judge) if extractor.name == EXECUTION else extractor


#: The extractor whose answers are run.
EXECUTION: Final = "execution"
#: Those that read numbers alone.
_NUMERIC: Final = frozenset({"numeric", "hash_marker", "last_number"})

EXTRACTORS: Mapping[str, Extractor] = MappingProxyType(
    {
        extractor.name: extractor
        for extractor in (
            Extractor(
                "choice_letter", chosen_option, lambda extracted, target: extracted == target, settled=names_option
            ),
            Extractor("numeric", _number_in, _is_number),
            Extractor("exact", _whole_text, lambda extracted, target: extracted == normalised(target)),
            Extractor("answer_phrase", _text_read(_phrase), _is_text_or_number),
            Extractor("boxed", _text_read(_last_box), _is_text_or_number),
            Extractor("hash_marker", _number_read(behind_hashes), _is_number),
            Extractor("last_number", _number_read(flexible_number), _is_number),
            Extractor(
                "article", _text_read(as_the_article), lambda extracted, target: extracted.lower() == target.lower()
            ),
            Extractor("constraints", _text_read(str.strip), _keeps_all),
            Extractor(EXECUTION, _text_read(code_in), _not_run),
        )
    }
)


def resolve_extractor(name: str, items: Iterable[Item]) -> Extractor:
    """The extractor of a suite's `metric_config.extractor`, checked against the items that it is to read.

    `auto` is `choice_letter` for multiple choice, `execution` where every target is tests, `constraints` where every
    one is constraints, `numeric` where every one is a number, else `exact`. The items are gone through once, to the
    end.

    Raises:
        BadInputError: for an unknown name, for items of which only some have options, and for an item that the
            named extractor could never grade.
    """
    n_items = n_without_choices = n_tests = n_constraints = 0
    without_choices: Item | None = None
    without_number: Item | None = None
    for item in items:
        n_items += 1
        n_tests += is_tests(item.target)
        n_constraints += is_constraints(item.target)
        _check_target(name, item)
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
        if n_tests or n_constraints:
            return _of_structure(n_items, n_tests, n_constraints)
        return EXTRACTORS["numeric" if without_number is None else "exact"]
    if name not in EXTRACTORS:
        raise BadInputError(f"metric_config.extractor {name!r} is unknown; use auto, {', '.join(EXTRACTORS)}")
    if name == "choice_letter" and without_choices is not None:
        raise BadInputError(
            f"metric_config.extractor 'choice_letter': item {without_choices.item_id!r} has no options; "
            "name the column of the options in dataset_config.choices_field, or use numeric or exact"
        )
    if name in _NUMERIC and without_number is not None:
        raise BadInputError(
            f"metric_config.extractor {name!r}: the target {without_number.target[:80]!r} of item "
            f"{without_number.item_id!r} is not a number; use exact, or name the right column in "
            "dataset_config.target_field"
        )
    return EXTRACTORS[name]


def _of_structure(n_items: int, n_tests: int, n_constraints: int) -> Extractor:
    """The extractor of items whose targets are tests or constraints; they are of one kind."""
    if n_items not in (n_tests, n_constraints):
        others = n_items - n_tests - n_constraints
        raise BadInputError(
            f"metric_config.extractor 'auto': {n_tests} items have tests, {n_constraints} constraints and {others} "
            "plain answers; audit the kinds in suites of their own"
        )
    return EXTRACTORS[EXECUTION if n_tests else "constraints"]


def _check_target(name: str, item: Item) -> None:
    """Raises BadInputError where an item's tests or constraints cannot be read by who is to read them."""
    for kind, parse, found in (
        (EXECUTION, parse_tests, is_tests(item.target)),
        ("constraints", parse_constraints, is_constraints(item.target)),
    ):
        if name == kind or (name == "auto" and found):
            try:
                parse(item.target)
            except ValueError as error:
                raise BadInputError(
                    f"metric_config.extractor {name!r}: the target of item {item.item_id!r} cannot be used: {error}"
                ) from None
