"""Messages of the gRPC service as the types of `proctor.domain`, and back. Pure.

What is wrong with one message is a Rejection, because the stream goes on; what is wrong with the settings is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from google.protobuf import json_format
from google.protobuf.unknown_fields import UnknownFieldSet
from pydantic import ValidationError

from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import MAX_CHOICES, Item, Measurements, Rejection, Variant
from proctor.domain.problems import SuiteProblems, visible
from proctor.domain.suite import PerturbationSection
from proctor.domain.suite_messages import fault_of
from proctor.formats.rewordings import Rewording
from proctor.perturbation.admission.gate import EMPTY, MAX_QUESTION_CHARACTERS, TOO_LONG
from proctor.perturbation.admission.measure import ItemPair, Measured
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.engine import ItemResult
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.runtime.grpc.messages import Unreadable

#: The message itself cannot be read: no protobuf, or text that is not valid Unicode (a lone surrogate's bytes).
NOT_READABLE: Final = "not_readable"
#: The message can be read and is no item: no identifier, a target that is not among the choices.
BAD_ITEM: Final = "bad_item"
#: What stands for the files of a suite, which a stream brings with it.
_WITH_THE_ITEMS: Final = "the stream's items"
_WITH_THE_SETTINGS: Final = "the stream's calibration"
_SECTION: Final = "perturbation_config"
_SHOWN_CHARACTERS: Final = 200
#: As a suite's.
MAX_BENCHMARK_CHARACTERS: Final = 128
#: Of an item, which gets a hundred variants at most; further ones would be measured in vain.
MAX_REWORDINGS: Final = 1_000
#: Of all of an item's options together, and of its target, as of its question.
MAX_ANSWER_CHARACTERS: Final = MAX_QUESTION_CHARACTERS
#: Of an item's name, which every reply repeats.
MAX_ITEM_ID_CHARACTERS: Final = 256


def not_readable(message: Unreadable) -> Rejection:
    """Why a message of a stream is no item and no pair."""
    return Rejection(item_id="", reason=NOT_READABLE, detail=message.why)


def section_of(settings: pb.StreamSettings | pb.CalibrationSettings) -> PerturbationSection:
    """The settings of a stream as a suite's section. A calibrated gate has its calibration in the stream's settings.

    Raises:
        BadInputError: with every problem found, each with its field, the value and the mend.
    """
    if len(settings.benchmark) > MAX_BENCHMARK_CHARACTERS:
        raise BadInputError(
            f"benchmark has {len(settings.benchmark):,} characters: a benchmark's name has at most "
            f"{MAX_BENCHMARK_CHARACTERS}"
        )
    config = settings.perturbation_config
    unknown = sorted({field.field_number for part in (settings, config) for field in UnknownFieldSet(part)})
    if unknown:
        # A setting that is left out of account would give other rewordings than were asked for.
        raise BadInputError(
            f"the stream's settings hold fields that this version of Proctor does not know (numbers {unknown}): "
            "use the perturbation.proto of the server's version"
        )
    values: dict[str, Any] = {field.name: value for field, value in config.ListFields()}
    given = dict(values)
    if "imported" in config.perturbation_strategy.split("+"):
        given["rewordings_path"] = _WITH_THE_ITEMS
    if config.gate == "calibrated":
        given["calibration_path"] = _WITH_THE_SETTINGS
    try:
        return PerturbationSection.model_validate(given)
    except ValidationError as error:
        tree = {_SECTION: values}
        problems = [
            fault_of({**entry, "loc": (_SECTION, *entry["loc"])}, tree).problem
            for entry in error.errors(include_url=False, include_input=False)
        ]
        raise SuiteProblems(problems, "the stream's settings") from None


class Asked(NamedTuple):
    """An item of a stream, with the ready rewordings that came with it.

    The item goes by its place in the stream: callers may use an identifier twice.
    """

    item: Item
    rewordings: tuple[Rewording, ...]


def asked_of(message: pb.Item, index: int) -> Asked | Rejection:
    """An item of a stream, or why it is none."""
    item = _item(message)
    if isinstance(item, Rejection):
        return item
    if len(message.rewordings) > MAX_REWORDINGS:
        return _refused(message, f"rewordings has {len(message.rewordings):,} entries; at most {MAX_REWORDINGS:,}")
    for wording in message.rewordings:
        if len(wording.question) > MAX_QUESTION_CHARACTERS:
            return _refused(message, f"rewordings.question has {len(wording.question):,} characters", TOO_LONG)
        if (fault := _fault_of_choices(wording.choices, "rewordings.choices")) is not None:
            return _refused(message, fault)
    rewordings = tuple(
        Rewording(line=line, question=wording.question, choices=tuple(wording.choices) or None)
        for line, wording in enumerate(message.rewordings, start=1)
    )
    return Asked(item.model_copy(update={"item_id": str(index)}), rewordings)


def pair_of(message: pb.Pair) -> ItemPair | Rejection:
    """A pair of a stream, or why it is none."""
    item = _item(message.original)
    if isinstance(item, Rejection):
        return item
    wording = message.rewording
    if len(wording.question) > MAX_QUESTION_CHARACTERS:
        return _refused(message.original, f"rewording.question has {len(wording.question):,} characters", TOO_LONG)
    if (fault := _fault_of_choices(wording.choices, "rewording.choices")) is not None:
        return _refused(message.original, fault)
    choices = tuple(wording.choices) or item.choices
    return ItemPair(item, Candidate(wording.question, choices, strategy="imported", level=1, provenance={}))


def item_name(message: pb.Item) -> str:
    """The caller's name for an item as replies repeat it: cut, so that the fault of a long one is told once."""
    return message.item_id[:MAX_ITEM_ID_CHARACTERS]


def _refused(message: pb.Item, detail: str, reason: str = BAD_ITEM) -> Rejection:
    return Rejection(item_id=item_name(message), reason=reason, detail=detail)


def _fault_of_choices(choices: Sequence[str], field: str) -> str | None:
    # Before anything is made of them: a message of 1 MiB holds half a million.
    if len(choices) > MAX_CHOICES:
        return f"{field} has {len(choices):,} entries; at most {MAX_CHOICES}"
    characters = sum(map(len, choices))
    if characters > MAX_ANSWER_CHARACTERS:
        return f"{field} has {characters:,} characters in all; at most {MAX_ANSWER_CHARACTERS:,}"
    return None


def _item(message: pb.Item) -> Item | Rejection:
    item_id, question = message.item_id, message.question
    if len(item_id) > MAX_ITEM_ID_CHARACTERS:
        return _refused(message, f"item_id has {len(item_id):,} characters; at most {MAX_ITEM_ID_CHARACTERS}")
    if (fault := _fault_of_choices(message.choices, "choices")) is not None:
        return _refused(message, fault)
    for field, text in (("target", message.target), ("dimension", message.dimension)):
        if len(text) > MAX_ANSWER_CHARACTERS:
            return _refused(message, f"{field} has {len(text):,} characters; at most {MAX_ANSWER_CHARACTERS:,}")
    if not question.strip():
        return Rejection(item_id=item_id, reason=EMPTY, detail="the question is empty")
    if len(question) > MAX_QUESTION_CHARACTERS:
        detail = f"the question has {len(question)} characters; at most {MAX_QUESTION_CHARACTERS} are read"
        return Rejection(item_id=item_id, reason=TOO_LONG, detail=detail)
    try:
        metadata = json_format.MessageToDict(message.metadata)
        canonical_json(metadata)
    except (json_format.Error, ValueError) as error:
        detail = f"the metadata cannot be held in JSON: {error}"
        return Rejection(item_id=item_id, reason=BAD_ITEM, detail=_shown(detail))
    try:
        return Item(
            item_id=item_id,
            question=question,
            choices=tuple(message.choices),
            target=message.target,
            dimension=message.dimension,
            metadata=metadata,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        detail = f"{first['loc'][0]}: {first['msg']}" if first["loc"] else first["msg"]
        return Rejection(item_id=item_id, reason=BAD_ITEM, detail=_shown(detail))


def _shown(text: str) -> str:
    """A message that quotes a caller's text, short and without characters that act on a terminal."""
    return visible(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def item_reply(index: int, item_id: str, result: ItemResult) -> pb.ItemReply:
    """What became of an item, under the caller's name for it."""
    return pb.ItemReply(
        index=index,
        item_id=item_id,
        variants=[_variant(variant) for variant in result.outcome.variants],
        rejections=[_rejection(rejection) for rejection in result.outcome.rejections],
        from_library=result.from_library,
    )


def refused_reply(index: int, item_id: str, rejection: Rejection) -> pb.ItemReply:
    """The reply to an item that was not reworded at all."""
    return pb.ItemReply(index=index, item_id=item_id, rejections=[_rejection(rejection)])


def measurement(index: int, item_id: str, measured: Measured) -> pb.Measurement:
    """What was measured of a pair, under the caller's name for its item."""
    reply = pb.Measurement(
        index=index, item_id=item_id, broken_invariants=measured.broken, admitted=measured.rejection is None
    )
    if measured.measurements is not None:
        reply.measurements.CopyFrom(_measurements(measured.measurements))
    if measured.rejection is not None:
        reply.rejection.CopyFrom(_rejection(measured.rejection))
    return reply


def refused_measurement(index: int, item_id: str, rejection: Rejection) -> pb.Measurement:
    """The reply to a pair that was not measured at all."""
    return measurement(index, item_id, Measured(None, (), rejection))


def _rejection(rejection: Rejection) -> pb.Rejection:
    # Without the item, which the reply around it names.
    return pb.Rejection(reason=rejection.reason, detail=rejection.detail)


def _measurements(measurements: Measurements) -> pb.Measurements:
    # A measurement that was not made is not set.
    return pb.Measurements(**{name: value for name, value in measurements.plain().items() if value is not None})


def _variant(variant: Variant) -> pb.Variant:
    message = pb.Variant(
        variant_id=variant.variant_id,
        item_hash=variant.item_hash,
        strategy=variant.strategy,
        level=variant.level,
        question=variant.question,
        choices=variant.choices,
        measurements=_measurements(variant.measurements),
    )
    if variant.labels is not None:
        message.labels = variant.labels.value
    message.provenance.update(variant.provenance)
    return message
