"""Questions to reword in a benchmark: of a file, or made up, so that the benchmark runs anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import numpy as np

from proctor.domain.item import Item

#: Sentences of the length and with the contents of grade-school word problems: four make 46 words, as in GSM8K.
_SENTENCES: Final = (
    "{a} buys {n} boxes of pencils for ${m} each at the small store near the school.",
    "{a} has {n} apples and {b} has {m} more apples than {a}.",
    "There are {n} students in the class, and the teacher gives each of them {m} new books.",
    "At the market, {a} bought {n} pounds of flour and used half of it to bake bread.",
    "{b} started with {n} marbles and lost {m} of them because there was a hole in the bag.",
    "If {a} sells {n} hats every day, the shop earns at least ${m} before noon.",
    "{b} paid {n}% of the price when the job was finished.",
    "The trip to the beach takes {n} hours, although {b} walks the last {m} miles.",
    "Every week {a} and {b} plant {n} trees in the large garden behind the house.",
    "{a} decides to read {n} pages of the book that {b} found on Monday.",
)
_QUESTIONS: Final = (
    "How many {x} does {a} have left?",
    "How much money did {b} spend in total?",
    "How many {x} will they have after {m} weeks?",
    "What is the total number of {x} that {a} needs?",
)
NAMES: Final = ("Tom", "Maria", "James", "Anna", "Peter", "Susan", "David", "Laura", "Robert", "Emily")
THINGS: Final = ("apples", "marbles", "books", "pencils", "trees", "cookies", "hats", "tickets")


def made_up(count: int, seed: int) -> list[Item]:
    """So many stories; the same seed gives the same."""
    rng = np.random.default_rng(seed)
    return [_story(place, rng) for place in range(count)]


def read(path: Path) -> list[Item]:
    """The questions of a JSONL file with `question` and `answer`, such as GSM8K's test set."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Item(item_id=str(place), question=row["question"], target=row["answer"]) for place, row in enumerate(rows)]


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """The pairs of a JSONL file with `original` and `rephrased`."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["original"], row["rephrased"]) for row in rows]


def _story(place: int, rng: np.random.Generator) -> Item:
    a, b = rng.choice(NAMES, size=2, replace=False)
    sentences = [*rng.choice(_SENTENCES, size=3, replace=False), rng.choice(_QUESTIONS)]
    told = [
        sentence.format(a=a, b=b, n=rng.integers(2, 60), m=rng.integers(2, 60), x=rng.choice(THINGS))
        for sentence in sentences
    ]
    return Item(item_id=f"story-{place}", question=" ".join(told), target=str(rng.integers(2, 600)))
