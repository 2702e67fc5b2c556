"""The search of training data beside an audit's answers: asked for once the endpoint has answered the probe, awaited
before the evidence is weighed. Pure.

It takes no state of its own. Its request is sent again where its answer is overdue, by whoever takes the audit on; its
answer is noted on the audit's row once, whatever was delivered twice.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.domain.corpus_search import Searched
from proctor.domain.messages import CorpusSearched, SearchCorpus
from proctor.router.audit import AuditView
from proctor.router.states import RUNNING
from proctor.runtime.records.audit_state import AuditState

#: Nothing is searched for a model that may not be there.
_TOO_EARLY: Final = (AuditState.CREATED, AuditState.PROBING)


class Ended(NamedTuple):
    """What the end of a search makes of its audit."""

    searched: Searched | None = None
    """To be noted."""
    failure: str | None = None
    """Why the audit fails."""


def request_of(audit: AuditView) -> SearchCorpus | None:
    """The request whose answer the audit needs; None where there is no search, or no need of one now."""
    inputs, state = audit.inputs, audit.record.state
    if not inputs.searching or inputs.paused or state not in RUNNING or state in _TOO_EARLY:
        return None
    assert inputs.corpora is not None
    return SearchCorpus(audit_id=audit.audit_id, items=inputs.items, plan=inputs.corpora)


def ledger_stage(plan: str) -> str:
    """The ledger's name of the shards of a plan, by its digest."""
    return f"search-{plan.rpartition(':')[2][:12]}"


def turn_of(audit_id: str) -> str:
    """The name under which the ledger notes that the request was sent, until its answer is overdue."""
    return f"search:{audit_id}"


def ended(audit: AuditView, answer: CorpusSearched) -> Ended | None:
    """What becomes of an audit by an answer; None where it is late, or was delivered before.

    Where the suite approves nothing without the search, one that failed leaves the audit open, to go on once that is
    mended. Otherwise the audit goes on, and its report says why nothing was searched.
    """
    if audit.record.state not in RUNNING or not audit.inputs.searching or answer.plan != audit.inputs.corpora:
        return None
    if answer.searched.error is not None and audit.suite.search_required:
        return Ended(failure=f"the training data could not be searched: {answer.searched.error}")
    return Ended(searched=answer.searched)
