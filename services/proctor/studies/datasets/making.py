"""Items of a dimension from its templates and a seed."""

from __future__ import annotations

from typing import Final

from proctor.domain.canonical import short_id
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.studies.datasets.dimensions import Dimension
from proctor.studies.datasets.made import Made, Template
from proctor.text.sameness import question_digest

METHOD: Final = "dataset/1"
MAX_ITEMS: Final = 100_000
#: Draws for each item that is wanted, until the templates are taken to have no more.
_TRIES: Final = 20


def make_items(dimension: Dimension, count: int, *, seed: int, scoring: str) -> list[Item]:
    """So many different items; the same seed gives the same, and more of them begin with the fewer.

    Args:
        dimension: what they ask.
        count: how many.
        seed: whoever knows it knows the items.
        scoring: the extractor that is to read the answers, which is noted in them.

    Raises:
        BadInputError: where the templates have no more different ones.
    """
    found: list[Item] = []
    seen: set[str] = set()
    for number in range(_TRIES * count):
        if len(found) == count:
            break
        draws = Draws(METHOD, dimension.name, seed, number)
        template = draws.one_of(dimension.templates)
        made = template.make(draws)
        if made is None or (digest := question_digest(made.question, ())) in seen:
            continue
        seen.add(digest)
        found.append(_item(dimension, template, made, scoring, {"seed": seed, "draw": number}))
    if len(found) < count:
        raise BadInputError(
            f"--count: the templates of {dimension.name} gave {len(found):,} different items of this seed and not "
            f"{count:,}; ask for fewer, or add items of another seed"
        )
    return found


def _item(dimension: Dimension, template: Template, made: Made, scoring: str, origin: dict[str, int]) -> Item:
    solution = {"solution": made.solution} if made.solution else {}
    return Item(
        # By what is asked and not by its place: the same problem has the same name in every file.
        item_id=f"{dimension.name}-{short_id([made.question, made.target])}",
        question=made.question,
        target=made.target,
        dimension=dimension.name,
        cluster=template.name,
        metadata={"scoring": scoring, "template": template.name, **origin, **solution},
    )
