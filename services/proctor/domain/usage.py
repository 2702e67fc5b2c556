"""What an audit used, and what of that has a price."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.domain.base import Frozen


class Usage(Frozen):
    """Trials and tokens, those that have no known price apart: they cost something, and nobody said what."""

    trials: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """Of what has a price, in the currency of the operator's prices."""
    unpriced_trials: int = 0
    """Of the trials."""
    unpriced_input_tokens: int = 0
    unpriced_output_tokens: int = 0

    @property
    def priced(self) -> bool:
        """Whether the cost is that of everything."""
        return not (self.unpriced_trials or self.unpriced_input_tokens or self.unpriced_output_tokens)

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """The sum."""
        found = list(usages)
        return cls(**{name: sum(getattr(one, name) for one in found) for name in cls.model_fields})

    def beyond(self, earlier: Usage) -> Usage:
        """What was used since; never less than nothing, also where what was counted before was lost."""
        return type(self)(
            **{name: max(0, getattr(self, name) - getattr(earlier, name)) for name in type(self).model_fields}
        )
