"""What a decision has to say where a suite asks for more than is known of the weights. Pure."""

from __future__ import annotations

from proctor.domain.decision import Decision, DecisionOutcome, Reason
from proctor.domain.suite import Suite
from proctor.domain.weights import Weights, falls_short

CODE = "weights_not_enough"


def with_weights(decision: Decision, suite: Suite, known: Weights) -> Decision:
    """The decision, which approves nothing where the weights are not known as the suite asks.

    A block stays one: what was found was found in the model that answered.
    """
    wanted = suite.governance.required_weights
    if wanted == "any" or not falls_short(known, Weights(wanted)):
        return decision
    reason = Reason(
        code=CODE,
        text=f"The suite asks for weights that are {wanted} (governance.required_weights), and those of this audit are "
        f"{known.words}.",
    )
    if decision.outcome is DecisionOutcome.APPROVE:
        changed = {"outcome": DecisionOutcome.REVIEW, "reasons": (reason, *decision.reasons)}
    else:
        changed = {"reasons": (*decision.reasons, reason)}
    return decision.model_copy(update=changed)
