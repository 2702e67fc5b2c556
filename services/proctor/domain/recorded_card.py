"""A protocol card as far as somebody's log records it, and two such cards beside each other.

What a log does not record is unknown, which is neither equal to what another log says nor different from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest, canonical_json, json_digest
from proctor.domain.card import ProtocolCard
from proctor.domain.log_origin import UNKNOWN

#: What every card of a log is asked for. A log may record more, e.g. further settings of the decoding.
FIELDS: Final = (
    "task_set.task",
    "task_set.version",
    "task_set.dataset",
    "task_set.revision",
    "split.split",
    "prompt_template.template",
    "prompt_template.n_shot",
    "prompt_template.fewshot_seed",
    "prompt_template.system_message",
    "prompt_template.chat",
    "prompt_template.chat_template",
    "decoding_policy.temperature",
    "decoding_policy.top_p",
    "decoding_policy.max_tokens",
    "decoding_policy.stop",
    "decoding_policy.seed",
    "metric.name",
    "metric.extractor",
    "evaluator.name",
    "evaluator.version",
    "evaluator.engine",
)
#: Of a recorded setting; a longer text stands on the card by its digest.
MAX_CHARACTERS: Final = 400
#: Of a card, and members of one setting.
MAX_SETTINGS: Final = 200
_MAX_DEPTH: Final = 6
_MAX_INTEGER: Final = 2**53 - 1
#: Fields of Proctor's own card that are its subject, as `ProtocolCard.protocol_digest` has it.
_SUBJECT: Final = "model_run_config"

Side = Literal["a", "b", "both"]


class RecordedCard(Frozen):
    """What a log records of how its scores came about. A field that is not there is unknown."""

    protocol: dict[str, Any] = Field(default_factory=dict)
    """Field → value: what has to be equal for two results to be comparable."""
    subject: dict[str, Any] = Field(default_factory=dict)
    """What is compared: the model, and its run."""
    own: ProtocolCard | None = None
    """The whole card, where Proctor made the result: then a field that is not there does not exist."""

    @property
    def protocol_digest(self) -> str:
        """Digest of the card without its subject, what is not recorded as `unknown`."""
        if self.own is not None:
            return self.own.protocol_digest
        return json_digest({**dict.fromkeys(FIELDS, UNKNOWN), **self.protocol})

    @property
    def fingerprint(self) -> str:
        """Digest of the whole card."""
        if self.own is not None:
            return self.own.fingerprint
        return json_digest({"protocol_digest": self.protocol_digest, "subject": self.subject})

    @property
    def unknown(self) -> tuple[str, ...]:
        """Fields that are not recorded."""
        return () if self.own is not None else tuple(name for name in FIELDS if name not in self.protocol)

    def with_protocol(self, values: Mapping[str, Any]) -> RecordedCard:
        """The card with further fields; what no card can hold stays unknown."""
        return self.model_copy(update={"protocol": {**self.protocol, **_held(values)}})


#: Of a log that records nothing of its protocol.
NOTHING_RECORDED: Final = RecordedCard()


def recorded_card(protocol: Mapping[str, Any], subject: Mapping[str, Any] | None = None) -> RecordedCard:
    """The card of what a log records.

    Values are somebody else's: a long text is held by its digest, and what canonical JSON cannot write is unknown.
    """
    return RecordedCard(protocol=_held(protocol), subject=_held(subject or {}))


def card_of_proctor(card: ProtocolCard) -> RecordedCard:
    """Proctor's own card, field by field."""
    plain = card.plain()
    name, _, version = plain.pop("evaluator_version").partition(" ")
    subject = plain.pop(_SUBJECT)
    plain.pop("plugins", None)
    fields = {"evaluator.name": name, "evaluator.version": version, **_flat(plain)}
    fields |= {f"plugins.{part}": origin for part, origin in card.protocol_plugins.items()}
    protocol = {field: value for field, value in fields.items() if value != UNKNOWN}
    return RecordedCard(protocol=protocol, subject=_flat(subject), own=card)


class FieldDifference(Frozen):
    """A field that both logs record, and not with the same value."""

    field: str
    a: Any
    b: Any


class UnknownField(Frozen):
    """A field that may differ, because a log does not record it."""

    field: str
    unknown_in: Side


class ProtocolComparison(Frozen):
    """Two cards beside each other."""

    a: RecordedCard
    b: RecordedCard
    differs: tuple[FieldDifference, ...]
    unknown: tuple[UnknownField, ...]

    @property
    def equal(self) -> tuple[str, ...]:
        """Fields that both record with one value."""
        apart = {one.field for one in self.differs}
        return tuple(name for name in self.a.protocol if name in self.b.protocol and name not in apart)


def compare_cards(a: RecordedCard, b: RecordedCard) -> ProtocolComparison:
    """What differs between two cards, and what is not known to be equal."""
    both_whole = a.own is not None and b.own is not None
    if both_whole:
        names = tuple(sorted({*_own_fields(a), *_own_fields(b)}))
    else:
        # A log of another tool is not held to fields that Proctor's card alone has.
        further = {name for card in (a, b) if card.own is None for name in card.protocol}
        names = tuple(dict.fromkeys((*FIELDS, *sorted(further))))
    values_a, values_b = (_values(card, names, whole=both_whole) for card in (a, b))
    differs: list[FieldDifference] = []
    unknown: list[UnknownField] = []
    for name in names:
        first, second = values_a[name], values_b[name]
        if _Unknown in (first, second):
            side: Side = "both" if first is second else "a" if first is _Unknown else "b"
            unknown.append(UnknownField(field=name, unknown_in=side))
        elif canonical_json(first) != canonical_json(second):
            differs.append(FieldDifference(field=name, a=first, b=second))
    return ProtocolComparison(a=a, b=b, differs=tuple(differs), unknown=tuple(unknown))


class _Unknown:
    """Stands for a value that a card does not have."""


def _values(card: RecordedCard, names: Iterable[str], *, whole: bool) -> dict[str, Any]:
    # Of two whole cards, one that lacks a field says that there is no such thing, unless it calls it unknown.
    said = _own_fields(card) if whole else set(names)
    return {name: card.protocol.get(name, _Unknown) if name in said else None for name in names}


def _own_fields(card: RecordedCard) -> set[str]:
    if card.own is None:
        return set(card.protocol)
    plain = card.own.plain()
    del plain[_SUBJECT], plain["evaluator_version"]
    plain.pop("plugins", None)
    return {*card.protocol, *_flat(plain)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _held(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a card can hold, as it holds them."""
    found: dict[str, Any] = {}
    for name, value in list(values.items())[:MAX_SETTINGS]:
        held = _plain(value, _MAX_DEPTH)
        if held is not _Unknown and held != UNKNOWN:
            found[_text(str(name))] = held
    return found


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return value if abs(value) <= _MAX_INTEGER else str(value)[:MAX_CHARACTERS]
    if isinstance(value, float):
        return value if math.isfinite(value) else _Unknown
    if depth and isinstance(value, list | tuple | dict):
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value))[: MAX_SETTINGS + 1]
        members = [(name, _plain(one, depth - 1)) for name, one in pairs]
        if len(pairs) > MAX_SETTINGS or any(one is _Unknown for _, one in members):
            return _Unknown
        if isinstance(value, dict):
            return {_text(str(name)): one for name, one in members}
        return [one for _, one in members]
    return _Unknown


def _text(value: str) -> str:
    data = value.encode("utf-8", "backslashreplace")
    return data.decode() if len(value) <= MAX_CHARACTERS else bytes_digest(data)
