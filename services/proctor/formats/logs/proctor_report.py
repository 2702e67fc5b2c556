"""Proctor's own report of an audit: the answers to the canonical questions of the items that were compared.

The card is the report's, and its digests are made anew: what the file says of them is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from proctor.domain.card import ProtocolCard
from proctor.domain.recorded_card import card_of_proctor
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.domain.weights import Weights, weights_known
from proctor.formats.faults import shown
from proctor.formats.logs.checks import Ids, refuse
from proctor.formats.logs.log_file import LogFile
from proctor.formats.logs.log_format import LogFormat

_SCHEMA: Final = "proctor-report/"
#: The report's one arm whose answers a comparison of models is about.
CANONICAL: Final = "canonical"


def read_report(log: LogFile) -> RunLog:
    """The run of a report. `line` counts its items.

    Raises:
        BadInputError: where it has no card, or no item's answer.
    """
    source, document = log.source, log.document
    try:
        card = ProtocolCard.model_validate(document.get("card"))
        recorded = card_of_proctor(card)
        # What cannot be digested is no card.
        digest = recorded.fingerprint
    except (ValidationError, ValueError, RecursionError):
        refuse(source, 1, "the report's card is not one of a Proctor of this version; make the report again")
    if digest != document.get("fingerprint"):
        refuse(source, 1, "the report's card is not the one that its fingerprint was made of: it was changed since")
    recorded = recorded.model_copy(update={"subject": {**recorded.subject, "weights": _weights(document)}})
    evidence = document.get("evidence")
    found = evidence.get("perturbation") if isinstance(evidence, dict) else None
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list) or not items:
        refuse(source, 1, "the report holds no item's answers, for no rewording of any was compared")
    ids = Ids(source)
    answers = tuple(_answer(source, place, item, ids) for place, item in enumerate(items, 1))
    limit = card.decoding_policy.get("max_tokens")
    model = recorded.subject.get("model.model_id")
    return RunLog(
        source,
        "proctor",
        CANONICAL,
        answers,
        limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None,
        model=model if isinstance(model, str) else None,
        card=recorded,
    )


def _answer(source: str, place: int, item: Any, ids: Ids) -> LoggedAnswer:
    if not isinstance(item, dict) or not isinstance(item.get("canonical_correct"), bool):
        refuse(source, place, f"an item is {shown(item)}; one with item_id and canonical_correct is needed")
    return LoggedAnswer(ids.read(item.get("item_id"), place, "item_id"), item["canonical_correct"], place)


def _fits(log: LogFile) -> bool:
    if log.first != "{" or _SCHEMA.encode() not in log.data:
        return False
    return str(log.document.get("schema_version", "")).startswith(_SCHEMA) and "card" in log.document


AUDIT_REPORT: Final = LogFormat(_fits, lambda log: (read_report(log),))


def _weights(document: Mapping[str, Any]) -> str:
    """How the weights are known; what a report of before there were kinds calls verified was declared."""
    subject = document.get("subject")
    said = subject if isinstance(subject, dict) else {}
    kind = said.get("weights")
    known = Weights(kind) if isinstance(kind, str) and kind in set(Weights) else None
    return weights_known(known, reported=said.get("verified") is True).value
