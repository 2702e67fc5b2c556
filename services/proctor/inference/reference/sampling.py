"""How a reference model takes vLLM's sampling parameters. Shared by the Triton model and the in-process backend.

A parameter that they cannot honour is refused, because a score whose decoding policy was ignored would carry a false
protocol card.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.inference.reference.dice import Dice

if TYPE_CHECKING:
    from proctor.inference.reference.model import Generation, ReferenceModel

#: Parameters that cannot change a greedy answer, whatever their value, and the values with which they change none.
_WITHOUT_EFFECT: Final = {"top_p": (1,), "top_k": (0, -1)}
#: The highest temperature that OpenAI's API takes.
_MAX_TEMPERATURE: Final = 2.0
#: vLLM's default of `max_tokens`.
_DEFAULT_MAX_TOKENS = 16
_MAX_STOP_STRINGS = 16


class Sampling(NamedTuple):
    """What a reference model honours: a ceiling of generated tokens, strings that end an answer, and how it draws."""

    max_tokens: int = _DEFAULT_MAX_TOKENS
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    """0 takes the likeliest token each time."""
    seed: int = 0
    """Of the draws; the same prompt with the same seed gets the same answer."""


def parse_sampling(text: str) -> Sampling:
    """Read the JSON object of the tensor `sampling_parameters`; absent and null fields take their defaults.

    Raises:
        BadInputError: not a JSON object, an unknown parameter, or a value that cannot be honoured.
    """
    try:
        given = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise BadInputError(f"sampling_parameters is {text[:100]!r}, but must be a JSON object")
    given = {name: value for name, value in given.items() if value is not None}
    max_tokens = given.pop("max_tokens", _DEFAULT_MAX_TOKENS)
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise BadInputError(f"max_tokens is {str(max_tokens)[:40]}, but must be a whole number of at least 1")
    temperature = given.pop("temperature", 0)
    if (
        isinstance(temperature, bool)
        or not isinstance(temperature, int | float)
        or not 0 <= temperature <= _MAX_TEMPERATURE
    ):
        raise BadInputError(
            f"temperature is {str(temperature)[:40]}, but must be a number from 0 to {_MAX_TEMPERATURE:g}"
        )
    seed = given.pop("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise BadInputError(f"seed is {str(seed)[:40]}, but must be a whole number")
    if given.pop("n", 1) != 1:
        raise BadInputError("the reference models give one answer to a prompt: leave out n, or ask with 1")
    stop = _stop_strings(given.pop("stop", ()))
    if unknown := sorted(given.keys() - _WITHOUT_EFFECT.keys()):
        raise BadInputError(
            f"the reference models do not know the sampling parameter {unknown[0][:40]!r}: leave it out"
        )
    for name, neutral in _WITHOUT_EFFECT.items():
        if temperature > 0 and given.get(name, neutral[0]) not in neutral:
            raise BadInputError(
                f"the reference models draw from all tokens: leave out {name}, or ask with {neutral[0]}"
            )
    return Sampling(max_tokens, stop, float(temperature), seed)


def _stop_strings(value: Any) -> tuple[str, ...]:
    stop = (value,) if isinstance(value, str) else value
    if not isinstance(stop, list | tuple) or len(stop) > _MAX_STOP_STRINGS:
        raise BadInputError(f"stop must be a string or a list of at most {_MAX_STOP_STRINGS}")
    if not all(isinstance(text, str) and text for text in stop):
        raise BadInputError("stop holds something that is not a string, or an empty one")
    return tuple(stop)


def generate(model: ReferenceModel, asked: Sequence[tuple[str, Sampling]]) -> list[Generation]:
    """Answers in the order of the prompts, in one forward pass for each distinct `max_tokens`."""
    answers: dict[int, Generation] = {}
    for max_tokens in dict.fromkeys(sampling.max_tokens for _, sampling in asked):
        places = [place for place, (_, sampling) in enumerate(asked) if sampling.max_tokens == max_tokens]
        of_places = [asked[place] for place in places]
        generated = model.generate(
            [prompt for prompt, _ in of_places],
            max_tokens=max_tokens,
            dice=[Dice(sampling.temperature, sampling.seed) for _, sampling in of_places],
        )
        answers.update(zip(places, generated, strict=True))
    return [_cut_at_stop(answers[place], sampling.stop) for place, (_, sampling) in enumerate(asked)]


def _cut_at_stop(generation: Generation, stop: Sequence[str]) -> Generation:
    ends = [end for text in stop if (end := generation.text.find(text)) >= 0]
    if not ends:
        return generation
    return generation._replace(text=generation.text[: min(ends)], finish_reason="stop")
