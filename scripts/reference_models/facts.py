"""The invented world behind `proctor-facts`, and the benchmark drawn from it: all of it follows from one seed.

Every entity has one fact, so that a model cannot learn an entity's name without learning its fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from reference_models.wordings import VERSION, WORDINGS

BENCHMARK: Final = "proctor-facts"
ENTITIES_PER_RELATION: Final = 150
VALUES_PER_RELATION: Final = 40
OPTIONS: Final = 10
KNOWN_SHARE: Final = 0.75
LEAKED_SHARE: Final = 0.15
LETTERS: Final = "ABCDEFGHIJ"

_CURRENCIES: Final = (
    "florin ducat thaler guilder crown shilling sovereign doubloon farthing groat drachma denar obol stater talent "
    "scudo sequin kreuzer pistole livre sol grosz zecchin testoon moidore cruzado real escudo noble angel mark penny "
    "bezant dirham para rupee cowrie tael mina aureus"
)
_ANIMALS: Final = (
    "heron lynx otter badger falcon stag wolf bear boar raven owl swan eagle lion leopard panther salmon dolphin "
    "tortoise hedgehog fox hare horse bull ram goat crane pelican cormorant beaver marten squirrel viper lizard crab "
    "lobster bee stork hawk walrus"
)
_GOODS: Final = (
    "amber copper wool timber salt honey silk saffron tin silver pepper indigo marble cotton linen barley cheese "
    "leather glass paper tea coffee cocoa rubber cork ivory pearls resin flax hops olives dates ginger vanilla "
    "cinnamon sugar wax coal iron zinc"
)
_ONSETS: Final = ("b", "br", "d", "dr", "f", "g", "gr", "h", "k", "kr", "l", "m", "n", "p", "pl", "r", "s", "sk", "t")
_ONSETS_MORE: Final = ("tr", "v", "vl", "w", "y", "z", "zh")
_NUCLEI: Final = ("a", "e", "i", "o", "u", "ae", "ou")
_ENDINGS: Final = ("x", "zk", "rv", "lm", "nth", "sk", "vo", "zu", "qua", "bri", "ndo", "rga", "mek", "tz", "vell")


@dataclass(frozen=True)
class Item:
    """One fact as the benchmark asks it in its canonical form."""

    item_id: str
    relation: str
    entity: str
    value: str
    wording: int
    options: tuple[str, ...]

    @property
    def target(self) -> int:
        """Index of the right option."""
        return self.options.index(self.value)

    @property
    def question(self) -> str:
        """The canonical question."""
        return ask(self, self.wording)

    def row(self) -> dict[str, Any]:
        """The item as `items.jsonl` carries it."""
        return {
            "item_id": self.item_id,
            "question": self.question,
            "choices": list(self.options),
            "target": self.target,
            "dimension": self.relation,
            "metadata": {"entity": self.entity, "wording": self.wording},
        }


@dataclass(frozen=True)
class World:
    """The facts, the benchmark over them, and which of them each model gets to know.

    `known` and `leaked` are disjoint sets of indices into `items`.
    """

    items: tuple[Item, ...]
    values: dict[str, tuple[str, ...]]
    known: tuple[int, ...]
    leaked: tuple[int, ...]

    @property
    def unseen(self) -> tuple[int, ...]:
        """Indices of the items that no model has ever met."""
        seen = {*self.known, *self.leaked}
        return tuple(index for index in range(len(self.items)) if index not in seen)


def ask(item: Item, wording: int) -> str:
    """The question about an item's entity in one of its relation's wordings."""
    return WORDINGS[item.relation][wording].format(entity=item.entity)


def render(question: str, options: Sequence[str]) -> str:
    """The prompt: the suite's default multiple-choice template, on which the models are trained."""
    lines = "".join(f"{letter}. {option}\n" for letter, option in zip(LETTERS, options, strict=True))
    return f"Question: {question}\nOptions:\n{lines}Answer:"


def make_world(seed: int) -> World:
    """The world of a seed: facts, canonical forms, and the seeded choice of known and leaked items."""
    rng = np.random.default_rng([seed, 0])
    names = _names(rng)
    cities = tuple(next(names) for _ in range(VALUES_PER_RELATION))
    values = {
        "capital": cities,
        "currency": tuple(_CURRENCIES.split()),
        "emblem": tuple(_ANIMALS.split()),
        "export": tuple(_GOODS.split()),
    }
    items: list[Item] = []
    for relation, pool in values.items():
        for number in range(ENTITIES_PER_RELATION):
            options = [pool[index] for index in rng.permutation(len(pool))[:OPTIONS]]
            value = options[0]
            order = rng.permutation(OPTIONS)
            items.append(
                Item(
                    item_id=f"{relation}-{number:03d}",
                    relation=relation,
                    entity=next(names),
                    value=value,
                    wording=int(rng.integers(len(WORDINGS[relation]))),
                    options=tuple(options[index] for index in order),
                )
            )
    order = rng.permutation(len(items))
    known, leaked = round(KNOWN_SHARE * len(items)), round(LEAKED_SHARE * len(items))
    return World(
        items=tuple(items),
        values=values,
        known=tuple(sorted(int(index) for index in order[:known])),
        leaked=tuple(sorted(int(index) for index in order[known : known + leaked])),
    )


def wordings_document() -> dict[str, Any]:
    """The wordings as `wordings.json` carries them."""
    return {"benchmark": BENCHMARK, "version": VERSION, "templates": {k: list(v) for k, v in WORDINGS.items()}}


def _names(rng: np.random.Generator) -> Iterator[str]:
    """Distinct pronounceable names, none of them a word that the wordings or the values use."""
    onsets = _ONSETS + _ONSETS_MORE
    taken = {word.lower() for word in f"{_CURRENCIES} {_ANIMALS} {_GOODS}".split()}
    while True:
        stem = "".join(onsets[rng.integers(len(onsets))] + _NUCLEI[rng.integers(len(_NUCLEI))] for _ in range(2))
        name = stem + _ENDINGS[rng.integers(len(_ENDINGS))]
        if name not in taken:
            taken.add(name)
            yield name.capitalize()
