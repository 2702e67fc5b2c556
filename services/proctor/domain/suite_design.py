"""How many items an audit asks: all of its sample, or as many as the evidence needs, looked at on the way."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from proctor.domain.base import Section
from proctor.domain.field_words import Words

#: A fifth of the sample, then each further tenth. Chosen by simulation: docs/sequential.md.
DEFAULT_LOOKS: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DEFAULT_FUTILITY: Final = 0.15
#: Each look costs the later ones a part of the error, and a round trip to the scorer.
MAX_LOOKS: Final = 20


class DesignSection(Section):
    """Whether an audit asks its whole sample, or stops at a look at which the evidence decides.

    `sample_size` is then the greatest number of items. Intervals hold their level at every look together, and so does
    p: what a look may spend is fixed here, before anything is asked.
    """

    kind: Literal["fixed", "sequential"] = "fixed"
    """`fixed` asks the whole sample and looks once; `sequential` looks on the way, and stops where it would approve or
    block, or where no further item is likely to decide."""
    looks: Annotated[tuple[float, ...], Words(alphabet="shares of the sample, ascending, the last 1")] = Field(
        default=DEFAULT_LOOKS, min_length=1, max_length=MAX_LOOKS
    )
    """At which shares of the sample to look, ascending; the last is 1."""
    spending: Literal["pocock", "obrien_fleming"] = "pocock"
    """How the error is spent over the looks: `pocock` about evenly, which ends what is plain early; `obrien_fleming`
    next to nothing early, which keeps most power for the last look."""
    futility: float = Field(default=DEFAULT_FUTILITY, ge=0.0, lt=1.0)
    """Chance of a decision by the last look below which an audit stops for review, as a fraction; 0 never does."""

    @property
    def sequential(self) -> bool:
        """Whether there are looks on the way."""
        return self.kind == "sequential"

    @model_validator(mode="after")
    def _looks_ascend_to_the_whole_sample(self) -> Self:
        ascending = all(before < after for before, after in pairwise((0.0, *self.looks)))
        if not ascending or self.looks[-1] != 1.0:
            raise PydanticCustomError(
                "looks_not_ascending",
                "has looks that do not ascend from above 0 to 1",
                {"mend": "name shares of the sample in ascending order, the last 1, e.g. [0.2, 0.4, 0.6, 0.8, 1]"},
            )
        return self
