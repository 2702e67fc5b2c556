"""Questions about facts that stand in the question itself.

What the world knows cannot be made from a seed: an invented fact that is not told is known to nobody, and a true one
was
published. So these tell a few invented facts and ask for one of them: what is measured is recall from what was just
read.
Facts of the world come from annotated files.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.perturbation.strategies.draws import Draws
from proctor.studies.datasets.made import Made, Template

_BEGINS: Final = (
    "Vor",
    "Tal",
    "Mer",
    "Kes",
    "Bran",
    "Ois",
    "Dru",
    "Fen",
    "Hal",
    "Jor",
    "Lu",
    "Nim",
    "Quel",
    "Ras",
    "Sel",
    "Ur",
)
_MIDDLES: Final = ("a", "e", "i", "o", "en", "an", "or", "il", "um", "eth")
_ENDS: Final = ("neth", "dor", "mar", "holm", "wick", "stad", "vik", "ling", "bora", "tun", "gard", "sund")
_FIRST: Final = (
    "Ada",
    "Boris",
    "Cleo",
    "Dario",
    "Edda",
    "Fritz",
    "Gala",
    "Hugo",
    "Ilsa",
    "Juno",
    "Karel",
    "Livia",
    "Milo",
    "Nora",
)
_KINDS: Final = (
    "library",
    "observatory",
    "museum",
    "botanical garden",
    "archive",
    "lighthouse",
    "university",
    "theatre",
)
_HELD: Final = ("maps", "clocks", "letters", "masks", "telescopes", "seeds", "violins", "meteorites", "globes", "coins")
_COLOURS: Final = ("copper", "green", "blue", "white", "grey", "yellow", "red", "black")


class _Place(NamedTuple):
    town: str
    founder: str
    year: int
    number: int
    held: str
    colour: str


def _told(draws: Draws) -> Made | None:
    kind = draws.one_of(_KINDS)
    places = [_place(draws) for _ in range(4 + draws.below(3))]
    columns = ([one.town for one in places], [one.founder for one in places], [one.year for one in places])
    if any(len(set(column)) < len(places) for column in columns):
        # Two of a name or a year would make an answer that is not the only one.
        return None
    facts = " ".join(
        f"The {kind} of {one.town} was founded in {one.year} by {one.founder}; it has a {one.colour} roof and keeps "
        f"{one.number} {one.held}."
        for one in places
    )
    asked = draws.one_of(places)
    question, answer = draws.one_of(
        (
            (f"In which year was the {kind} of {asked.town} founded? Answer with the year alone.", str(asked.year)),
            (f"Who founded the {kind} of {asked.town}? Answer with the name alone.", asked.founder),
            (f"Which town's {kind} was founded in {asked.year}? Answer with the name alone.", asked.town),
            (f"In which town is the {kind} that {asked.founder} founded? Answer with the name alone.", asked.town),
            (
                f"How many {asked.held} does the {kind} of {asked.town} keep? Answer with the number alone.",
                str(asked.number),
            ),
            (f"Which colour is the roof of the {kind} of {asked.town}? Answer with one word.", asked.colour),
        )
    )
    return Made(f"{facts} {question}", answer, answer)


def _place(draws: Draws) -> _Place:
    town = draws.one_of(_BEGINS) + draws.one_of(_MIDDLES) + draws.one_of(_ENDS)
    founder = (
        f"{draws.one_of(_FIRST)} {draws.one_of(_BEGINS)}{draws.one_of(_MIDDLES)}{draws.one_of(('n', 's', 'l', 'r'))}"
    )
    year, count = 1500 + draws.below(450), 200 + draws.below(9_000)
    return _Place(town, founder, year, count, draws.one_of(_HELD), draws.one_of(_COLOURS))


TEMPLATES: Final = (Template("factual_recall/told/1", _told),)
