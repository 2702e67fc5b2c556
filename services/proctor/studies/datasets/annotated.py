"""Items that people wrote: their file read, and every row held to what its dimension and its extractor need."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import DatasetSection
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.fields import FieldFault, FieldMap, make_item
from proctor.formats.rows import is_typed, position_unit, read_rows
from proctor.grading import EXTRACTORS, Extractor
from proctor.grading.constraints import CONSTRAINTS, parse_constraints
from proctor.grading.extractors import target_number
from proctor.grading.programs import TESTS, parse_tests
from proctor.studies.datasets.dimensions import Dimension
from proctor.studies.datasets.item_files import CLUSTER
from proctor.text.sameness import question_digest

#: Fewer words ask nothing that one answer is right for.
MIN_WORDS: Final = 3


def read_annotated(path: Path, dimension: Dimension, scoring: str) -> list[Item]:
    """The items of a file of annotated rows, in its order.

    A row has `item_id` (or `id`), `question` and `answer`, `choices` where it has options, and may have `dimension`,
    `cluster` and `metadata`. The answer to code is an object with `entry` and `tests`, that to instructions a list of
    constraints.

    Raises:
        BadInputError: with up to ten faults, each with file, line and value: an id or a question that stands there
            twice, a question that asks nearly nothing, an answer that is missing or that the extractor would not read,
            another dimension.
    """
    faults, extractor = Faults(str(path), unit=position_unit(path)), EXTRACTORS[scoring]
    items: list[Item] = []
    ids: dict[str, int] = {}
    asked: dict[str, int] = {}
    with suppress(TooManyFaults):
        mapping: FieldMap | None = None
        for ordinal, row in enumerate(read_rows(path, faults)):
            mapping = mapping or _mapping(path, row.values)
            try:
                item = make_item(mapping, _with_plain_answer(row.values, scoring), ordinal)
                _check(item, row.values, dimension, extractor)
            except FieldFault as fault:
                faults.add(row.position, str(fault))
                continue
            digest = question_digest(item.question, item.choices)
            first, before = ids.setdefault(item.item_id, row.position), asked.setdefault(digest, row.position)
            if first != row.position:
                faults.add(
                    row.position, f"the identifier {shown(item.item_id)} stands at {first} already; make it unique"
                )
            elif before != row.position:
                faults.add(row.position, f"asks what {before} asks ({shown(item.question)}); leave one out")
            else:
                metadata = {**item.metadata, "scoring": scoring, "template": "annotated"}
                items.append(item.model_copy(update={"dimension": dimension.name, "metadata": metadata}))
    if faults:
        faults.refuse()
    if not items:
        raise BadInputError(f"{path} holds no items")
    return items


def _mapping(path: Path, first: dict[str, Any]) -> FieldMap:
    mapping = FieldMap.of(
        DatasetSection(benchmark_name="annotated", cluster_field=CLUSTER), first, typed=is_typed(path)
    )
    if mapping.id_field is None:
        raise BadInputError(
            f"{path}: the first row has neither item_id nor id; an item needs a name that stays when rows are moved"
        )
    return mapping


def _with_plain_answer(values: dict[str, Any], scoring: str) -> dict[str, Any]:
    """The row with an answer of tests or constraints written as the text that a target is."""
    answer = values.get("answer")
    key = {"execution": TESTS, "constraints": CONSTRAINTS}.get(scoring)
    if key is None or isinstance(answer, str) or answer is None:
        return values
    body = answer if isinstance(answer, dict) and key in answer else {key: answer}
    try:
        return {**values, "answer": canonical_json(body).decode()}
    except (ValueError, TypeError, RecursionError):
        raise FieldFault(f"answer is {shown(answer)}, which is not plain JSON") from None


def _check(item: Item, values: dict[str, Any], dimension: Dimension, extractor: Extractor) -> None:
    said = values.get("dimension")
    if said not in (None, "", dimension.name):
        raise FieldFault(
            f"dimension is {shown(said)}, and the file is read as {dimension.name}; one file, one dimension"
        )
    if len(item.question.split()) < MIN_WORDS:
        raise FieldFault(f"question is {shown(item.question)}, which asks nearly nothing")
    if extractor.name in ("execution", "constraints"):
        try:
            (parse_tests if extractor.name == "execution" else parse_constraints)(item.target)
        except ValueError as error:
            raise FieldFault(f"answer cannot be used: {error}") from None
        return
    if extractor.name == "choice_letter" and not item.choices:
        raise FieldFault("has no choices, and choice_letter reads which of them an answer names")
    if not _readable(item, extractor):
        raise FieldFault(
            f"answer is {shown(item.target)}, which the extractor {extractor.name} would not read in an answer that "
            f"gives "
            "it; write it as a model would, or name another extractor"
        )


def _readable(item: Item, extractor: Extractor) -> bool:
    """Whether somebody who gives the right answer, in the form that the extractor looks for, is found to be right."""
    if extractor.name in ("numeric", "hash_marker", "last_number") and target_number(item.target) is None:
        return False
    forms = (item.target, f"The answer is {item.target}", f"\\boxed{{{item.target}}}", f"#### {item.target}")
    read = (extractor.extract(form, item.choices) for form in forms)
    return any(one is not None and extractor.agrees(one, item.target) for one in read)
