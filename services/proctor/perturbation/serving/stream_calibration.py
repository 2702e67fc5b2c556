"""A calibration over a stream of labelled pairs: texts are embedded as they come, the window is learned at the end."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Final

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Rejection
from proctor.formats.gate_calibration import gate_calibration_bytes
from proctor.perturbation.admission.calibration import LabelledPair, calibrate
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.remembering import RememberingEncoder
from proctor.perturbation.serving.convert import BAD_ITEM, item_name, not_readable, pair_of, section_of
from proctor.perturbation.serving.isolation import Line, worked_on
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.stream_questions import check_question, check_room
from proctor.runtime.grpc.messages import Unreadable

_EQUIVALENT: Final = {pb.LabelledPair.LABEL_EQUIVALENT: True, pb.LabelledPair.LABEL_DIFFERENT: False}


class CalibrationStream:
    """What has come of one calibration; pairs and vectors are kept until its end, so they are limited in number.

    Raises:
        BadInputError: for settings that cannot be used.
    """

    def __init__(self, settings: pb.CalibrationSettings, encoder: Encoder, limits: Limits) -> None:
        self._section = section_of(settings)
        self._benchmark = settings.benchmark
        self._goals = _goals(settings)
        self._encoder = RememberingEncoder(encoder)
        self._limits = limits
        self._bytes = 0
        self._questions: set[str] = set()
        self._pairs: list[LabelledPair] = []
        self._reasons: Counter[str] = Counter()
        self._digest = hashlib.sha256()

    def add(self, batch: Sequence[pb.CalibrateRequest | Unreadable]) -> None:
        """Take pairs, and embed their texts.

        Raises:
            BadInputError: when settings come a second time.
            LimitError: when there are more pairs than are taken, or they are larger.
        """
        self._bytes += sum(message.ByteSize() for message in batch if not isinstance(message, Unreadable))
        if self._bytes > self._limits.max_calibration_bytes:
            raise LimitError(
                f"a calibration takes at most {self._limits.max_calibration_bytes >> 20} MiB of pairs: take fewer, or "
                "shorter ones"
            )
        brought = [
            message.question
            for message in batch
            if not isinstance(message, Unreadable) and message.WhichOneof("content") == "question"
        ]
        self._ask(brought)
        lines = [
            _read(place, message)
            for place, message in enumerate(batch)
            if isinstance(message, Unreadable) or message.WhichOneof("content") != "question"
        ]
        for line in worked_on(lines, self._embedded):
            if isinstance(line.content, Rejection):
                self._reasons[line.content.reason] += 1
            else:
                self._pairs.append(line.content)
        if len(self._pairs) > self._limits.max_calibration_pairs:
            raise LimitError(
                f"a calibration takes at most {self._limits.max_calibration_pairs} pairs: take fewer of each item's "
                "different pairs"
            )
        for message in batch:
            if not isinstance(message, Unreadable):
                self._digest.update(message.SerializeToString(deterministic=True))

    def result(self) -> pb.Calibration:
        """Learn the window from what has come.

        Raises:
            BadInputError: with too few pairs, or labels that no window can satisfy.
        """
        calibration = calibrate(
            self._pairs,
            self._section,
            benchmark=self._benchmark,
            encoder=self._encoder,
            items=self._benchmark_items(),
            goals=self._goals,
            inputs={"stream": f"sha256:{self._digest.hexdigest()}"},
        )
        return pb.Calibration(
            document=gate_calibration_bytes(calibration).decode(),
            conclusion=calibration.conclusion,
            rejections_by_reason=self._reasons,
        )

    def _benchmark_items(self) -> list[Item] | None:
        """The pairs' originals with the questions that came besides; None where there came none."""
        if not self._questions:
            return None
        paired = {pair.item.item_id: pair.item for pair in self._pairs}
        besides = sorted(self._questions - {item.question for item in paired.values()})
        named = (f"question {number}" for number in count(1))
        return [*paired.values(), *(Item(item_id=next(named), question=each, target="") for each in besides)]

    def _ask(self, questions: Sequence[str]) -> None:
        for question in questions:
            check_question(question)
        self._questions.update(questions)
        check_room(len(self._questions), self._bytes, self._limits)
        self._encoder.encode(questions)

    def _embedded(self, pairs: Sequence[LabelledPair]) -> Sequence[LabelledPair]:
        self._encoder.encode([text for pair in pairs for text in (pair.item.question, pair.candidate.question)])
        return pairs


def _read(place: int, message: pb.CalibrateRequest | Unreadable) -> Line[LabelledPair]:
    if isinstance(message, Unreadable):
        return Line(place, "", not_readable(message))
    if message.WhichOneof("content") == "settings":
        raise BadInputError("the stream carries settings twice: they come once, in its first message")
    labelled = message.pair
    item_id = item_name(labelled.pair.original)
    pair = pair_of(labelled.pair)
    equivalent = _EQUIVALENT.get(labelled.label)
    if isinstance(pair, Rejection):
        return Line(place, item_id, pair)
    if equivalent is None:
        detail = "the pair has no label: LABEL_EQUIVALENT or LABEL_DIFFERENT"
        return Line(place, item_id, Rejection(item_id=item_id, reason=BAD_ITEM, detail=detail))
    return Line(place, item_id, LabelledPair(pair.item, pair.candidate, equivalent, labelled.nearest))


def _goals(settings: pb.CalibrationSettings) -> Goals:
    given = {name: getattr(settings, name) for name in Goals._fields if settings.HasField(name)}
    for name, share in given.items():
        if not 0 < share < 1:
            raise BadInputError(f"{name} is {share:g}, but must be a share between 0 and 1")
    return Goals(**given)
