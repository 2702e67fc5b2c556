"""How long each part of a run may take before another takes it over: one place, and one order that must hold."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from proctor.domain.errors import BadInputError
from proctor.runtime.environment import EnvironmentSettings, variable_of

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False, description="a number of seconds above 0")]

#: Each must be below the next; the others stand for themselves.
_RISING = ("reconcile_interval_s", "lease_s", "visibility_timeout_s", "answer_time_s")


class Timing(EnvironmentSettings):
    """Time limits of a deployment, in seconds. Each has an environment variable `PROCTOR_<FIELD>`.

    Every process of a deployment has to have the same: the broker's rule for giving a message to another worker is
    applied by whichever worker looks.
    """

    reconcile_interval_s: Seconds = 30.0
    """Between two looks for what was lost."""
    lease_s: Seconds = 900.0
    """Longest time from dispatch to answer of a shard; past it another worker gets it. Long enough for an endpoint on a
    laptop that takes ten seconds a prompt and one prompt at a time."""
    visibility_timeout_s: Seconds = 1200.0
    """Past it the broker delivers a message again. Above the lease, so that this happens only when its worker is gone;
    the reconciler re-publishes overdue shards long before."""
    answer_time_s: Seconds = 1800.0
    """Longest time from a request to another service to its answer; past it the reconciler sends the request again.
    Above the visibility timeout: first the broker may deliver again what a worker that died had in hand."""
    grace_s: Seconds = 45.0
    """What a worker may take to leave after it is asked to (SIGTERM): it answers or hands back what it has in hand.
    Below the time after which its platform kills it, e.g. Kubernetes' terminationGracePeriodSeconds."""
    outage_s: Seconds = 120.0
    """An endpoint that is away longer fails the audits that ask it, and a registry those that wait for it; started
    again, they go on."""
    presence_s: Seconds = 20.0
    """A worker that is silent longer is lost, and what it had in hand goes to another."""
    stall_s: Seconds = 300.0
    """A worker that has work, and takes no step of it for longer, is stalled: `/livez` says so, and its platform starts
    another. The longest step that is no other program's is a part of a plan, or a forward pass: seconds. A shard may
    wait for its endpoint until its deadline, four fifths of the lease, which does not count; so a worker whose shards
    hang is seen after that and this: 720 + 300 s, when their lease has given them to another."""

    @model_validator(mode="after")
    def _rises(self) -> Self:
        for shorter, longer in pairwise(_RISING):
            before, after = getattr(self, shorter), getattr(self, longer)
            if before >= after:
                raise BadInputError(
                    f"{variable_of(shorter)} is {before:g} and must be below {variable_of(longer)}, "
                    f"which is {after:g}; set both"
                )
        return self

    @property
    def lease(self) -> timedelta:
        """`lease_s` as a duration."""
        return timedelta(seconds=self.lease_s)

    @property
    def answer_time(self) -> timedelta:
        """`answer_time_s` as a duration."""
        return timedelta(seconds=self.answer_time_s)


DEFAULT_TIMING = Timing()
