"""An answer that comes in pieces, and how much of it may come. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.domain.answer_bounds import max_answer_bytes
from proctor.inference.triton.wire import Piece
from proctor.inference.worker.backend import Answer, TrialFailure, check_length

#: Responses beside one a token: the final one, and those that hold the first bytes of a character.
_SPARE_PIECES: Final = 64
#: What is around the text of a piece: an id, the names and shapes of four tensors, two counts.
_PIECE_BYTES: Final = 1024


class AnswerBounds(NamedTuple):
    """What an answer may be at most."""

    max_tokens: int
    prompt_bytes: int = 0
    """Of the prompt where the model repeats it before its answer."""

    @property
    def streamed_bytes(self) -> int:
        """By how much a request to it lengthens what a stream may bring unasked."""
        text = max_answer_bytes(self.max_tokens) + self.prompt_bytes
        return text + (self.max_tokens + _SPARE_PIECES) * _PIECE_BYTES


class Pieces:
    """The pieces of one answer, put together as they come."""

    def __init__(self, bounds: AnswerBounds) -> None:
        self._bounds = bounds
        self._text = bytearray()
        self._last: Piece | None = None
        self._tokens: int | None = None
        self._count = 0

    def add(self, piece: Piece) -> None:
        """Take one more.

        Raises:
            TrialFailure: they are more, or longer, than the tokens that were asked for.
        """
        self._count += 1
        if self._count > self._bounds.max_tokens + _SPARE_PIECES:
            raise TrialFailure(
                f"the answer comes in more than {self._count - 1:,} pieces, of {self._bounds.max_tokens:,} tokens",
                retryable=False,
            )
        if piece.text is None:
            return
        self._text += piece.text
        check_length(len(self._text) - self._bounds.prompt_bytes, self._bounds.max_tokens)
        self._last = piece
        if piece.output_tokens is not None:
            self._tokens = (self._tokens or 0) + piece.output_tokens

    def answer(self) -> Answer:
        """The answer that they make up. Its finish reason and input tokens are the last piece's that holds text.

        Raises:
            TrialFailure: none of them holds text. That is not an empty answer.
        """
        if self._last is None:
            raise TrialFailure("the server ended the request without an answer", retryable=True)
        text = self._text.decode("utf-8", errors="replace")
        return Answer(text, self._last.finish_reason, self._last.input_tokens, self._tokens, self._last.weights)
