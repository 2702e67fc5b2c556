"""A benchmark whose questions share passages: several of each passage, each with its rewordings."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from benchmarking.stories import NAMES, THINGS, made_up
from proctor.domain.item import Item, Measurements, Variant

#: Of a passage: some 300 tokens.
_STORIES: Final = 5
#: The first as published, the others reworded.
_WORDINGS: Final = (
    "How many {x} does {a} have at the end?",
    "At the end, what number of {x} does {a} have?",
    "Count the {x} that {a} has when all is done.",
    "When all is done, how many {x} are left for {a}?",
)
REWORDINGS: Final = len(_WORDINGS) - 1
_MEASURED: Final = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)


class Passages(NamedTuple):
    """Items, whose cluster is their passage, and the rewordings of each."""

    items: list[Item]
    variants: list[Variant]


def about_passages(passages: int, questions: int, rewordings: int, seed: int) -> Passages:
    """Items that begin with their passage, passage after passage; the same seed gives the same.

    Args:
        passages: how many.
        questions: of each passage, at most as many as there are names times things.
        rewordings: of each question, at most `REWORDINGS`.
        seed: of the texts.
    """
    rng = np.random.default_rng([seed, passages])
    told = [_without_question(story.question) for story in made_up(passages * _STORIES, seed)]
    items, variants = list[Item](), list[Variant]()
    for number in range(passages):
        passage = " ".join(told[number * _STORIES : (number + 1) * _STORIES])
        for place, pair in enumerate(rng.permutation(len(NAMES) * len(THINGS))[:questions]):
            a, x = NAMES[pair // len(THINGS)], THINGS[pair % len(THINGS)]
            first, *others = (f"{passage}\n{wording.format(a=a, x=x)}" for wording in _WORDINGS[: 1 + rewordings])
            item = Item(
                item_id=f"passage-{number}-{place}", question=first, target=str(rng.integers(2, 600)),
                cluster=f"passage-{number}",
            )  # fmt: skip
            items.append(item)
            variants += [
                Variant(
                    item_id=item.item_id, item_hash=item.content_hash, strategy="wordings", question=text,
                    measurements=_MEASURED,
                )
                for text in others
            ]  # fmt: skip
    return Passages(items, variants)


def _without_question(story: str) -> str:
    """Its sentences up to the question, which comes last."""
    return story[: story.rindex(". ") + 1]
