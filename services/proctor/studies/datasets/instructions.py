"""Texts to write under constraints that a rule can check, drawn so that all of them can be kept at once.

A combination is kept only with a text that keeps it, which is put together here and held to the same checks that grade
answers: constraints that contradict each other have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from proctor.grading.constraints import Constraint, checked, written_constraints
from proctor.perturbation.strategies.draws import Draws
from proctor.studies.datasets.made import Made, Template

_TOPICS: Final = (
    "a morning at the market", "learning to ride a bicycle", "the first snow of a winter", "an old bridge", "a night "
                                                                                                            "train",
    "moving to another city", "a garden on a roof", "a lost umbrella", "the sound of rain", "a small museum",
    "how bread is baked", "why bees matter", "a day without electricity", "planning a long walk", "a letter to a "
                                                                                                  "neighbour",
    "caring for house plants", "a visit to a lighthouse", "how to pack a suitcase", "the history of a family recipe",
    "a meeting of two friends", "preparing for an exam", "a repair that took all day", "the advantages of libraries",
    "a river in summer", "a new job", "writing by hand", "a concert in a park", "choosing a pair of shoes",
)  # fmt: skip
_KINDS: Final = ("a short text", "a paragraph for a newsletter", "a note to a friend", "advice for a beginner")
_REQUIRED: Final = (
    "candle", "window", "copper", "harbour", "silver", "basket", "thunder", "marble", "lantern", "ribbon", "meadow",
    "engine",
    "kitchen", "pocket", "mirror", "feather",
)  # fmt: skip
_FORBIDDEN: Final = (
    "very",
    "really",
    "because",
    "however",
    "good",
    "nice",
    "thing",
    "time",
    "people",
    "always",
    "never",
    "many",
)
_FILLER: Final = (
    "we", "walk", "past", "quiet", "houses", "near", "water", "and", "see", "light", "over", "hills", "with",
    "green", "fields",
    "under", "clouds", "some", "birds", "sing",
)  # fmt: skip
_BEGINNINGS: Final = ("To begin with", "As it happens", "Not long ago", "On some days")
_ENDINGS: Final = ("That is all.", "And so it ended.", "We will see.", "More will follow.")
_KEYS: Final = ("title", "summary", "mood", "place", "season", "advice", "reason", "question")


class _Rule(NamedTuple):
    constraint: Constraint
    said: str


def _count(kind: str, said: str, low: int | None, high: int | None) -> _Rule:
    values = {"at_least": low, "at_most": high}
    text = f"exactly {low}" if low == high else f"at least {low}" if high is None else f"at most {high}"
    if low is not None and high is not None and low != high:
        text = f"between {low} and {high}"
    return _Rule(
        Constraint(kind, {key: value for key, value in values.items() if value is not None}), said.format(text)
    )


def _shared(draws: Draws) -> Iterator[_Rule]:
    """Rules that any form can have."""
    if draws.chance(0.7):
        words = draws.some_of(_REQUIRED, 1 + draws.below(3))
        yield _Rule(Constraint("include_words", {"words": words}), f"Use each of these words: {', '.join(words)}.")
    if draws.chance(0.6):
        words = draws.some_of(_FORBIDDEN, 1 + draws.below(3))
        yield _Rule(
            Constraint("exclude_words", {"words": words}), f"Do not use any of these words: {', '.join(words)}."
        )


def _prose(draws: Draws) -> Iterator[_Rule]:
    yield from _shared(draws)
    case = draws.below(4)
    if case < 2:
        name, said = ("lower_case", "lower case") if case else ("upper_case", "upper case")
        yield _Rule(Constraint(name, {}), f"Write all letters in {said}.")
    sentences = 2 + draws.below(6)
    if draws.chance(0.6):
        spread = draws.below(3)
        yield _count("sentences", "Write {} sentences.", sentences, sentences + spread)
    if draws.chance(0.8):
        low = 10 * sentences + draws.below(20)
        bounds = draws.one_of(((low, None), (low, low + 15), (None, low + 20)))
        yield _count("words", "Use {} words.", *bounds)
    if draws.chance(0.3):
        yield _count("paragraphs", "Write {} paragraphs, with an empty line between them.", 2, 2)
    if draws.chance(0.4):
        yield _Rule(Constraint("exclude_characters", {"characters": [","]}), "Do not use any commas.")
    if case >= 2 and draws.chance(0.4):
        text = draws.one_of(_BEGINNINGS)
        yield _Rule(Constraint("starts_with", {"text": text}), f"Begin with these words, as they stand here: {text}")
    if case >= 2 and draws.chance(0.4):
        text = draws.one_of(_ENDINGS)
        yield _Rule(Constraint("ends_with", {"text": text}), f"End with these words, as they stand here: {text}")


def _bullets(draws: Draws) -> Iterator[_Rule]:
    count = 3 + draws.below(5)
    yield _count(
        "bullets",
        "Write {} bullet points, each on a line of its own that begins with a hyphen and a space.",
        count,
        count,
    )
    yield from _shared(draws)
    if draws.chance(0.6):
        yield _count("words", "Use {} words.", None, 12 * count)
    if draws.chance(0.5):
        yield _Rule(Constraint("lower_case", {}), "Write all letters in lower case.")
    if draws.chance(0.5):
        yield _Rule(Constraint("exclude_characters", {"characters": [","]}), "Do not use any commas.")


def _json(draws: Draws) -> Iterator[_Rule]:
    keys = sorted(draws.some_of(_KEYS, 2 + draws.below(3)))
    said = "Answer with one JSON object and nothing else. Its keys are exactly: " + ", ".join(keys) + "."
    yield _Rule(Constraint("json_object", {"keys": keys}), said)
    yield from _shared(draws)
    if draws.chance(0.5):
        yield _Rule(
            Constraint("exclude_characters", {"characters": ["!", "?"]}), "Use no exclamation and no question marks."
        )


def _witness(constraints: tuple[Constraint, ...]) -> str:
    """A text that is to keep them all; whether it does is checked."""
    of = {one.kind: one.values for one in constraints}
    required = list(of.get("include_words", {}).get("words", ()))
    if "json_object" in of:
        values: dict[str, Any] = dict.fromkeys(of["json_object"]["keys"], "water")
        values[min(values)] = " ".join(["water", *required])
        return json.dumps(values)
    if "bullets" in of:
        count = of["bullets"]["at_least"]
        lines = [[*required] if number == 0 and required else ["quiet", "water"] for number in range(count)]
        return "\n".join(f"- {' '.join(line)}" for line in lines)
    return _prose_witness(of, required)


def _prose_witness(of: dict[str, Any], required: list[str]) -> str:
    begin, end = of.get("starts_with", {}).get("text", ""), of.get("ends_with", {}).get("text", "")
    sentences, bounds = of.get("sentences", {}).get("at_least", 2), of.get("words", {})
    fixed = len(begin.split()) + len(end.split())
    own = max(1, sentences - bool(end))
    wanted = max(bounds.get("at_least", bounds.get("at_most", 10 * sentences) - 2) - fixed, len(required) + own)
    pool = [*required, *(_FILLER[place % len(_FILLER)] for place in range(wanted - len(required)))]
    size = -(-len(pool) // own)
    parts = [pool[place : place + size] for place in range(0, len(pool), size)]
    written = [" ".join(part).capitalize() + "." for part in parts]
    if begin:
        written[0] = f"{begin} {written[0][0].lower()}{written[0][1:]}"
    if end:
        written.append(end)
    glue = "\n\n" if "paragraphs" in of else " "
    text = written[0] + glue + " ".join(written[1:]) if len(written) > 1 else written[0]
    return text.lower() if "lower_case" in of else text.upper() if "upper_case" in of else text


def _template(name: str, rules: Any) -> Template:
    def make(draws: Draws) -> Made | None:
        kind, topic = draws.one_of(_KINDS), draws.one_of(_TOPICS)
        drawn: list[_Rule] = list(rules(draws))
        constraints = tuple(one.constraint for one in drawn)
        if len(drawn) < 2 or not all(checked(witness := _witness(constraints), constraints)):
            return None
        listed = "\n".join(f"{number}. {one.said}" for number, one in enumerate(drawn, 1))
        question = f"Write {kind} about {topic}. Keep all of these rules:\n{listed}"
        return Made(question, written_constraints(constraints), witness)

    return Template(f"instruction_following/{name}/1", make)


TEMPLATES: Final = (_template("prose", _prose), _template("bullets", _bullets), _template("json", _json))
