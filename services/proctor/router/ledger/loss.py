"""Whether the ledger lost keys of an audit, and what is said of it. Pure.

Redis was emptied, or another came in its place; it evicted keys, or they expired, or a replica took over that had not
heard of them. The audit's row knows that its stage was planned, and the ledger knows where each shard of the plan must
be, so that what is gone is seen; an audit that goes on without it would hang, or count what it has not got.
"""

from __future__ import annotations

from proctor.router.inputs import AuditInputs
from proctor.router.ledger.types import Standing

#: A stage that was planned, and of which there is nothing.
_ALL = ("all",)


def loss(inputs: AuditInputs, stage: str, standing: Standing) -> str | None:
    """Why an audit cannot go on with a stage of which the ledger lost keys; None where it has them all."""
    gone = standing.lost
    if standing.parts.laid == 0:
        # Nothing but what is left of a plan, or nothing at all: a stage that begins, and begins anew, looks like it.
        gone = (gone or _ALL) if inputs.planned_stage == stage else ()
    if not gone:
        return None
    return (
        f"the ledger lost keys of this audit (stage {stage}: {' or '.join(gone)}): its Redis was emptied, came back "
        "without its data, or evicted them, or they expired; `proctor doctor` says what that Redis promises. Start the "
        "audit again: it goes on from the record store, keeps the answers that the ledger still has, and asks the rest "
        "again"
    )
