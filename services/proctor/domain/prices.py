"""What an endpoint's tokens cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proctor.domain.base import Frozen

Price = Annotated[float, Field(ge=0.0, le=1e9)]


class Prices(Frozen):
    """Prices of a million tokens, in any one currency."""

    input_per_million: Price
    output_per_million: Price

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens."""
        return (self.input_per_million * input_tokens + self.output_per_million * output_tokens) / 1_000_000
