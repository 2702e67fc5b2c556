"""What a caller did that changed something: who, how they were known, and what it was."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol


class Verb(StrEnum):
    """What can be done to an audit."""

    SUBMIT = "submit"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    SIGN_OFF = "sign-off"


class Doer(Protocol):
    """Who did something."""

    @property
    def name(self) -> str:
        """By what they are known here."""
        ...

    @property
    def via(self) -> str:
        """How they are known (`Submitter.via`)."""
        ...


class Action(NamedTuple):
    """One of them, by somebody."""

    verb: Verb
    by: Doer
    detail: Mapping[str, Any] = {}
    """What belongs to it, e.g. an audit's priority: JSON, and no secret."""


class ActionOnRecord(NamedTuple):
    """An action as it stands on record."""

    id: int
    audit_id: str | None
    """None for what is of no audit."""
    action: str
    name: str
    via: str
    at: str
    detail: dict[str, Any]
