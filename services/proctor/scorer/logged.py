"""What a decision and its report say where the answers were taken from logs: that Proctor did not see them come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.domain.card import ProtocolCard
from proctor.domain.decision import Decision, Reason
from proctor.domain.limitation import Limitation
from proctor.domain.log_origin import UNKNOWN

CODE = "answers_from_logs"


def whence(card: ProtocolCard) -> str:
    """Whose logs the answers were taken from, in words; empty where the model was asked."""
    found = _of(card)
    if found is None:
        return ""
    count = len(found["files"])
    return f"{'a log' if count == 1 else f'{count} logs'} of {found['format']} that Proctor did not produce"


def with_origin(decision: Decision, card: ProtocolCard) -> Decision:
    """The decision, with where its answers came from as its last reason: so it goes wherever the decision goes.

    The outcome stays: a log proves no weights, and neither does an endpoint that reports none.
    """
    if not (origin := whence(card)):
        return decision
    text = f"The answers were taken from {origin}: that this model gave them is the word of whoever handed the log in."
    return decision.model_copy(update={"reasons": (*decision.reasons, Reason(code=CODE, text=text))})


def limitations_of_logs(card: ProtocolCard) -> Iterator[Limitation]:
    """What such an audit cannot say; nothing where the model was asked."""
    found = _of(card)
    if found is None:
        return
    called = f" The log calls the model {found['model']!r}." if found["model"] else " The log does not name its model."
    yield Limitation(
        code=CODE,
        text=f"The answers were taken from {whence(card)}. Its prompts are those of this suite, byte for byte; that "
        "this model version gave the answers, and that none was changed since, is the word of whoever handed it in."
        f"{called}",
    )
    unknown = [
        name
        for name, value in {**card.decoding_policy, "chat_template": card.prompt_template.get("chat_template")}.items()
        if value == UNKNOWN
    ]
    if unknown:
        yield Limitation(
            code="settings_not_logged",
            text=f"The log does not record {', '.join(sorted(unknown))}: under what those answers were drawn is not "
            "known. They stand as unknown on the protocol card.",
        )
    if found["finish_reasons"] != "recorded":
        which = "answers" if found["finish_reasons"] == UNKNOWN else "all answers"
        yield Limitation(
            code="truncation_not_logged",
            text=f"The log does not record how {which} ended. One that was cut at its token limit cannot be told "
            "from a whole one, so the arms may differ in how many were.",
        )


def _of(card: ProtocolCard) -> dict[str, Any] | None:
    found = card.model_run_config.get("run", {}).get(CODE)
    return found if isinstance(found, dict) else None
