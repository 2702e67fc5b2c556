"""How long each part of a run may take before another takes it over: one place, and one order that must hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from itertools import pairwise

from proctor.domain.errors import BadInputError

#: Each must be below the next; the others stand for themselves.
_RISING = ("reconcile_interval_s", "lease_s", "visibility_timeout_s", "answer_time_s")


@dataclass(frozen=True)
class Timing:
    """Time limits of a deployment, in seconds. Each has an environment variable `PROCTOR_<FIELD>`.

    Every process of a deployment has to have the same: the broker's rule for giving a message to another worker is
    applied by whichever worker looks.
    """

    reconcile_interval_s: float = 30.0
    """Between two looks for what was lost."""
    lease_s: float = 900.0
    """Longest time from dispatch to answer of a shard; past it another worker gets it. Long enough for an endpoint on a
    laptop that takes ten seconds a prompt and one prompt at a time."""
    visibility_timeout_s: float = 1200.0
    """Past it the broker delivers a message again. Above the lease, so that this happens only when its worker is gone;
    the reconciler re-publishes overdue shards long before."""
    answer_time_s: float = 1800.0
    """Longest time from a request to another service to its answer; past it the reconciler sends the request again.
    Above the visibility timeout: first the broker may deliver again what a worker that died had in hand."""
    grace_s: float = 45.0
    """What a worker may take to leave after it is asked to (SIGTERM): it answers or hands back what it has in hand.
    Below the time after which its platform kills it, e.g. Kubernetes' terminationGracePeriodSeconds."""
    outage_s: float = 120.0
    """An endpoint that is away longer fails the audits that ask it; started again, they go on."""
    presence_s: float = 20.0
    """A worker that is silent longer is lost, and what it had in hand goes to another."""

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if not (math.isfinite(value) and value > 0):
                raise BadInputError(f"PROCTOR_{name.upper()} is {value}, but must be a number of seconds above 0")
        for shorter, longer in pairwise(_RISING):
            if values[shorter] >= values[longer]:
                raise BadInputError(
                    f"PROCTOR_{shorter.upper()} is {values[shorter]:g} and must be below PROCTOR_{longer.upper()}, "
                    f"which is {values[longer]:g}; set both"
                )

    @property
    def lease(self) -> timedelta:
        """`lease_s` as a duration."""
        return timedelta(seconds=self.lease_s)

    @property
    def answer_time(self) -> timedelta:
        """`answer_time_s` as a duration."""
        return timedelta(seconds=self.answer_time_s)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Timing:
        """Timing from `PROCTOR_*` variables, and the defaults for those that are not set.

        Raises:
            BadInputError: when one is no number above 0, or those that hand over to each other do not rise.
        """
        values: dict[str, float] = {}
        for field in fields(cls):
            variable = f"PROCTOR_{field.name.upper()}"
            text = environ.get(variable)
            if not text:
                continue
            try:
                values[field.name] = float(text)
            except ValueError:
                raise BadInputError(f"{variable} is {text[:80]!r}, but must be a number of seconds above 0") from None
        return cls(**values)

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process this timing."""
        return {f"PROCTOR_{field.name.upper()}": str(getattr(self, field.name)) for field in fields(self)}


DEFAULT_TIMING = Timing()
