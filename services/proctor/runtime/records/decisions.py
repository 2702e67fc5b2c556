"""Decisions as they are on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from proctor.domain.decision import DecisionEvent
from proctor.domain.versions import reading


def decision_of(audit_id: str, event: Mapping[str, Any]) -> DecisionEvent:
    """The event of an audit's decision; raises NewerVersionError when it needs a newer Proctor."""
    try:
        return DecisionEvent.model_validate(event)
    except ValidationError as error:
        raise reading(f"the decision of audit {audit_id}", error) from None
