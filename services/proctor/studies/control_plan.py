"""What control items add to the plan of an audit: prompts, and the noise of a second sample."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.evidence.perturbation.control_items import MIN_CONTROL_ITEMS


class ControlPlan(NamedTuple):
    """The control items that would be asked."""

    n: int = 0
    items: tuple[Item, ...] = ()
    """Empty where they are not at hand, as the benchmark's are not."""
    notes: tuple[str, ...] = ()

    def beside(self, items: int, *, clustered: bool) -> float | None:
        """Control items for each item of the benchmark, as far as chances heed them."""
        return self.n / items if self.n and not clustered else None


def notes_of_control(suite: Suite, plan: ControlPlan, *, clustered: bool) -> tuple[str, ...]:
    """What the trials and the chances have of the control items."""
    if suite.control is None:
        return ()
    what = (
        "chances of approval and shares found are those of the benchmark alone, because how control items add to the "
        "noise of clusters is not reckoned here: expect less"
        if clustered
        else "chances of approval and shares found are those of the difference, with the noise of both samples, and "
        "suppose that rewording costs as much on both"
    )
    said = (
        f"{plan.n:,} control items are reworded and asked in both wordings beside the benchmark, and counted among the "
        f"trials; {what}",
    )
    if plan.n >= MIN_CONTROL_ITEMS:
        return (*plan.notes, *said)
    few = f"with fewer than {MIN_CONTROL_ITEMS} control items the gate can only review: name more in control_config"
    return (*plan.notes, *said, few)
