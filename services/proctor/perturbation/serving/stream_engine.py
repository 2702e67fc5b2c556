"""Batches of a stream through the engine: messages in, messages out. Used from one thread only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.item import Rejection
from proctor.domain.suite import PerturbationSection
from proctor.formats.gate_calibration import parse_gate_calibration
from proctor.perturbation.admission.learned import with_window
from proctor.perturbation.admission.measure import ItemPair, Measured, measure
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.engine import ItemResult, reword
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.recipe import Recipe, refuse_to_ask
from proctor.perturbation.serving.convert import (
    Asked,
    asked_of,
    item_name,
    item_reply,
    measurement,
    not_readable,
    pair_of,
    refused_measurement,
    refused_reply,
    section_of,
)
from proctor.perturbation.serving.isolation import Line, worked_on
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.stream_calibration import CalibrationStream
from proctor.perturbation.serving.stream_questions import StreamQuestions
from proctor.runtime.grpc.messages import Unreadable

_PROBE: Final = "How many are there?"
_INSTEAD: Final = "use them, name a strategy that rewords by rule, or send rewordings along and name 'imported'"
_CALIBRATION: Final = "the stream's calibration"


Request = TypeVar("Request", pb.PerturbRequest, pb.MeasureRequest)


class StreamEngine:
    """The encoder, the library and the strategies behind every stream of a server.

    Args:
        resolve: finds the encoder; called until it succeeds, so that a mend needs no restart.
        library: what was made before.
        bundle: folder of the benchmarks' own wordings.
    """

    def __init__(self, resolve: Callable[[], Encoder], library: VariantLibrary, bundle: Path) -> None:
        self._resolve = resolve
        self._library = library
        self._bundle = bundle
        self._proven: Encoder | None = None

    def encoder(self) -> Encoder:
        """The encoder, found and tried out once: afterwards, what it fails on is the fault of a text.

        Raises:
            EncoderError: when it is missing or does not embed, with the mend.
        """
        if self._proven is None:
            encoder = self._resolve()
            encoder.encode([_PROBE])
            self._proven = encoder
        return self._proven

    def recipe(self, settings: pb.StreamSettings) -> Recipe:
        """How a stream's items are to be reworded.

        Raises:
            BadInputError: for settings that cannot be used.
            EncoderError: when there is no encoder to measure with.
        """
        section, _ = self._gate(settings)
        refuse_to_ask(section, _INSTEAD)
        return Recipe(section, benchmark=settings.benchmark, bundle=self._bundle)

    def section(self, settings: pb.StreamSettings) -> PerturbationSection:
        """The limits by which a stream's pairs are judged; raises as `recipe`."""
        return self._gate(settings)[0]

    def questions(self, settings: pb.StreamSettings, limits: Limits) -> StreamQuestions:
        """The benchmark's questions that come with a stream, none of them so far; raises as `recipe`."""
        return StreamQuestions(*self._gate(settings), self.encoder(), limits)

    def _gate(self, settings: pb.StreamSettings) -> tuple[PerturbationSection, GateCalibration | None]:
        section = section_of(settings)
        document = settings.calibration
        if bool(document) != (section.gate == "calibrated"):
            raise BadInputError(
                f"the gate is {section.gate!r} and the settings carry {'a' if document else 'no'} calibration: the "
                "gate 'calibrated' takes one, and 'fixed' none"
            )
        calibration = parse_gate_calibration(document.encode(), _CALIBRATION) if document else None
        return with_window(section, calibration, benchmark=settings.benchmark, encoder=self.encoder()), calibration

    def perturb(
        self,
        recipe: Recipe,
        batch: Sequence[pb.PerturbRequest | Unreadable],
        start: int,
        questions: StreamQuestions | None = None,
    ) -> list[pb.ItemReply]:
        """One reply an item, in their order; none to a question of the benchmark.

        Args:
            recipe: the stream's settings.
            batch: messages that follow each other in the stream.
            start: the place of the first of them among the stream's items, from 0.
            questions: those of the benchmark that the stream brought; added to.

        Raises:
            BadInputError: when settings come a second time, or questions where they cannot be used.
            LimitError: when there are too many questions.
            StoreError: when the library fails.
        """

        items, others = _without_questions(batch, questions)

        def work(asked: Sequence[Asked]) -> Sequence[ItemResult]:
            chain = recipe.chain({one.item.item_id: one.rewordings for one in asked if one.rewordings})
            items = [one.item for one in asked]
            return reword(
                items, recipe.settings, chain=chain, encoder=self.encoder(), library=self._library, others=others
            )

        return [
            refused_reply(place, item_id, result)
            if isinstance(result, Rejection)
            else item_reply(place, item_id, result)
            for place, item_id, result in worked_on([_read_item(*one) for one in enumerate(items, start)], work)
        ]

    def measure(
        self,
        section: PerturbationSection,
        batch: Sequence[pb.MeasureRequest | Unreadable],
        start: int,
        questions: StreamQuestions | None = None,
    ) -> list[pb.Measurement]:
        """One measurement a pair, in their order; arguments and errors as those of `perturb`."""

        items, others = _without_questions(batch, questions)

        def work(pairs: Sequence[ItemPair]) -> Sequence[Measured]:
            return measure(pairs, section, self.encoder(), others=others)

        return [
            refused_measurement(place, item_id, result)
            if isinstance(result, Rejection)
            else measurement(place, item_id, result)
            for place, item_id, result in worked_on([_read_pair(*one) for one in enumerate(items, start)], work)
        ]

    def calibration(self, settings: pb.CalibrationSettings, limits: Limits) -> CalibrationStream:
        """A calibration that begins; raises as `recipe`."""
        return CalibrationStream(settings, self.encoder(), limits)


def _without_questions(
    batch: Sequence[Request | Unreadable], questions: StreamQuestions | None
) -> tuple[list[Request | Unreadable], OtherItems | None]:
    """The messages that ask for something, and the benchmark's questions when the first of them has come."""
    rest: list[Request | Unreadable] = []
    brought: list[str] = []
    for message in batch:
        if isinstance(message, Unreadable) or message.WhichOneof("content") != "question":
            rest.append(message)
        elif questions is None:
            raise BadInputError("the stream brings questions of the benchmark, and its gate keeps no margin to them")
        elif rest:
            raise BadInputError("a question of the benchmark comes after the first item: send all of them before it")
        else:
            brought.append(message.question)
    if questions is not None:
        questions.add(brought)
    return rest, None if questions is None or not rest else questions.others()


def _read_item(place: int, message: pb.PerturbRequest | Unreadable) -> Line[Asked]:
    if isinstance(message, Unreadable):
        return Line(place, "", not_readable(message))
    _hold_to_one_setting(message)
    return Line(place, item_name(message.item), asked_of(message.item, place))


def _read_pair(place: int, message: pb.MeasureRequest | Unreadable) -> Line[ItemPair]:
    if isinstance(message, Unreadable):
        return Line(place, "", not_readable(message))
    _hold_to_one_setting(message)
    return Line(place, item_name(message.pair.original), pair_of(message.pair))


def _hold_to_one_setting(message: pb.PerturbRequest | pb.MeasureRequest) -> None:
    if message.WhichOneof("content") == "settings":
        raise BadInputError("the stream carries settings twice: they come once, in its first message")
