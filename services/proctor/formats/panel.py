"""What reference models answered, as JSON lines: a row an answer."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from proctor.domain.errors import BadInputError
from proctor.domain.panel import Panel, ReferenceModel
from proctor.formats.faults import shown
from proctor.formats.rows import parsed_rows
from proctor.text.normalise import has_lone_surrogate

#: Models of a panel: each is drawn anew in every replicate of the bootstrap.
MAX_MODELS: Final = 100
_MAX_NAME_CHARACTERS: Final = 200


def parse_panel(data: bytes, source: str) -> Panel:
    """Read rows of `{"model": NAME, "item_id": ID, "correct": true | false}`.

    Raises:
        BadInputError: with up to ten faults, each with line and value; when there is no row; and where there are more
            than MAX_MODELS.
    """
    answers: dict[str, dict[str, bool]] = {}
    parsed_rows(data, source, lambda row: _take(answers, row.values))
    if not answers:
        raise BadInputError(f"{source} holds no answers of reference models")
    if len(answers) > MAX_MODELS:
        raise BadInputError(f"{source} holds answers of {len(answers):,} models; at most {MAX_MODELS} make a panel")
    return Panel(
        models=tuple(
            ReferenceModel(
                name=name,
                right=tuple(sorted(item for item, correct in said.items() if correct)),
                wrong=tuple(sorted(item for item, correct in said.items() if not correct)),
            )
            for name, said in sorted(answers.items())
        )
    )


def panel_notes(panel: Panel, benchmark: Set[str], fresh: Set[str], source: str) -> tuple[str, ...]:
    """What a person should know of a panel before the audit: items that some model of it did not answer.

    Raises:
        BadInputError: when there is no benchmark item, or no fresh one, that every model of it answered.
    """
    known = [frozenset((*model.right, *model.wrong)) for model in panel.models]
    both = frozenset.intersection(*known)
    notes = []
    for what, wanted in (("benchmark", benchmark), ("fresh", fresh)):
        missing = wanted - both
        if missing == wanted:
            raise BadInputError(
                f"{source}: no {what} item of the suite was answered by every reference model (e.g. "
                f"{sorted(wanted)[0]!r} not); ask them the same items, and give the answers under the items' ids"
            )
        if missing:
            notes.append(
                f"{source}: {len(missing):,} of the {len(wanted):,} {what} items were not answered by every reference "
                "model, and take no part in the comparison with fresh items"
            )
    return tuple(notes)


def _take(answers: dict[str, dict[str, bool]], values: Mapping[str, Any]) -> None:
    model, item, correct = _text(values, "model"), _text(values, "item_id"), values.get("correct")
    if not isinstance(correct, bool):
        raise ValueError(f"correct is {shown(correct)}; true or false is needed")
    said = answers.setdefault(model, {})
    if said.setdefault(item, correct) is not correct:
        raise ValueError(f"{shown(model)} answers {shown(item)} both rightly and wrongly; give one answer an item")


def _text(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if not isinstance(value, str) or not value.strip() or has_lone_surrogate(value):
        raise ValueError(f"{field} is {shown(value)}; text is needed")
    if field == "model" and (len(value) > _MAX_NAME_CHARACTERS or not value.isprintable()):
        raise ValueError(f"model is {shown(value)}; a name has at most {_MAX_NAME_CHARACTERS} printable characters")
    return value
