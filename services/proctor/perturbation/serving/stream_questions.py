"""The benchmark's questions that come with a stream, to which its gate keeps a margin."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import MAX_QUESTION_CHARACTERS
from proctor.perturbation.admission.learned import other_items
from proctor.perturbation.encoder import Encoder, exact
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.remembering import RememberingEncoder
from proctor.perturbation.serving.limits import Limits
from proctor.text.normalise import has_lone_surrogate


class StreamQuestions:
    """The questions of one stream, embedded as they come. They are kept to its end, so they are limited in number.

    Args:
        section: the stream's settings, with the window and the margin that a calibrated gate has learned.
        calibration: what it learned them with; None for a fixed gate.
        encoder: what embeds them.
        limits: how many are taken.
    """

    def __init__(
        self, section: PerturbationSection, calibration: GateCalibration | None, encoder: Encoder, limits: Limits
    ) -> None:
        self._section = section
        self._calibration = calibration
        self._encoder = RememberingEncoder(exact(encoder))
        self._limits = limits
        self._questions: set[str] = set()
        self._bytes = 0
        self._others: OtherItems | None = None
        self._closed = False

    def add(self, questions: Sequence[str]) -> None:
        """Take questions.

        Raises:
            BadInputError: where the gate keeps no margin, after the first item, and for what is no question.
            LimitError: when there are more than are taken, or they are larger.
            EncoderError: when they cannot be embedded.
        """
        if not questions:
            return
        if self._section.min_margin is None:
            raise BadInputError(
                "the stream brings questions of the benchmark, and its gate keeps no margin to them: leave them out, "
                "or set min_margin or a calibration that learned one"
            )
        if self._closed:
            raise BadInputError("a question of the benchmark comes after the first item: send all of them before it")
        new = [question for question in dict.fromkeys(questions) if question not in self._questions]
        for question in new:
            check_question(question)
        self._bytes += sum(len(question.encode()) for question in new)
        self._questions.update(new)
        check_room(len(self._questions), self._bytes, self._limits)
        self._encoder.encode(new)

    def others(self) -> OtherItems | None:
        """All questions that came, which are all that there are from now on; None where the gate keeps no margin.

        Raises:
            BadInputError: when there are none, or others than the margin was learned with.
        """
        if not self._closed:
            questions = self._questions or None
            self._others = other_items(self._section, self._calibration, questions, self._encoder.encode)
            self._closed = True
        return self._others


def check_question(question: str) -> None:
    """Refuse what no item can ask.

    Raises:
        BadInputError: for an empty, an unreadable or a very long text.
    """
    if not question.strip() or has_lone_surrogate(question):
        raise BadInputError("a question of the benchmark is empty or no text")
    if len(question) > MAX_QUESTION_CHARACTERS:
        raise BadInputError(
            f"a question of the benchmark has {len(question):,} characters; at most "
            f"{MAX_QUESTION_CHARACTERS:,} are read"
        )


def check_room(questions: int, size: int, limits: Limits) -> None:
    """Refuse more questions than are kept.

    Raises:
        LimitError: naming the limit.
    """
    if questions > limits.max_questions or size > limits.max_question_bytes:
        raise LimitError(
            f"a stream brings at most {limits.max_questions:,} questions of a benchmark, of "
            f"{limits.max_question_bytes >> 20} MiB in all"
        )
