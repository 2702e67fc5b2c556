"""Asking the channels of plug-ins: what is wrong with one is said of it, and touches nothing else of an audit.

What it raised is said by its kind alone, because a report is the same on every machine; the log has the traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from proctor.domain.channel_results import ChannelEvidence, OtherEvidence, Verdict
from proctor.domain.errors import BadInputError, NewerVersionError, StoreError
from proctor.domain.limitation import Limitation
from proctor.domain.suite import Suite
from proctor.scorer.channels.channel import Channel, ChannelInputs, ChannelPlan, NotAudited
from proctor.scorer.channels.registry import CHANNELS

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")
_MAX_CHARACTERS = 2_000
_MAX_LINES = 20


class _FaultyError(Exception):
    """A plug-in that raised, or answered with what is no answer. The words follow the plug-in's name."""


def weigh_plugin(name: str, inputs: ChannelInputs) -> OtherEvidence | NotAudited:
    """What a plug-in's channel finds; `invalid` where it raises, not audited where it cannot be had here.

    Raises:
        StoreError: an input cannot be read, which is no fault of the plug-in; it may be readable in a moment.
        NewerVersionError: likewise.
    """
    channel = _loaded(name)
    if channel is None:
        return NotAudited("it could not be loaded where the audit was scored")
    theirs = replace(inputs, rows=inputs.rows.read_only())
    try:
        return _asked(name, lambda: _result(channel.weigh(theirs)))
    except _FaultyError as fault:
        return OtherEvidence(
            verdict=Verdict.INVALID,
            reasons=(f"The {name} channel of {CHANNELS.origin(name)} {fault}, so nothing is known from it.",),
            null_hypothesis=_text(channel.null_hypothesis),
            compares=_text(channel.compares),
            wording="Invalid",
        )


def _result(found: object) -> OtherEvidence | NotAudited:
    if isinstance(found, NotAudited):
        return NotAudited(_text(found.reason))
    if not isinstance(found, OtherEvidence):
        raise _FaultyError(f"answered with a {type(found).__name__}")
    if found.verdict is Verdict.NOT_AUDITED:
        return NotAudited(_text(" ".join(found.reasons)))
    # Anew, so that a subclass brings nothing of its own along.
    return OtherEvidence.model_validate({name: getattr(found, name) for name in OtherEvidence.model_fields})


def limitations_of_plugin(name: str, suite: Suite, result: ChannelEvidence | None) -> tuple[Limitation, ...]:
    """What an audit cannot say because of how a plug-in's channel turned out."""
    channel = _loaded(name)
    if channel is None:
        return ()

    def said() -> tuple[Limitation, ...]:
        found = channel.limitations(suite, result)
        return tuple(Limitation(code=_text(one.code)[:80], text=_text(one.text)) for one in found[:_MAX_LINES])

    try:
        return _asked(name, said)
    except _FaultyError as fault:
        text = f"What the {name} channel cannot say is not known: it {fault}."
        return (Limitation(code=f"{name}_limitations_unknown", text=text),)


def gap_of(name: str) -> str:
    """What is not known where a channel was not audited."""
    channel = _loaded(name)
    if channel is None:
        return f"The channel {name[:80]!r} did not run, so nothing is known from it."
    return _text(channel.gap)


def plan_of_plugin(name: str, suite: Suite, items: int) -> ChannelPlan:
    """What a plug-in's channel says of an audit before it runs; what is wrong with it where it can say nothing."""
    try:
        channel = CHANNELS.get(name)
    except BadInputError as error:
        return ChannelPlan((f"the {name} channel would not be audited: {error}",))
    needs = f"the {name} channel of {CHANNELS.origin(name)} needs {_text(channel.needs)}"

    def planned() -> ChannelPlan:
        plan = channel.plan(suite, items)
        lines = (f"the {name} channel: {_text(line)}" for line in plan.lines[:_MAX_LINES])
        return ChannelPlan((needs, *lines), int(plan.calls))

    try:
        return _asked(name, planned)
    except _FaultyError as fault:
        return ChannelPlan((needs, f"the {name} channel {fault} when it was asked for its plan"))


def _loaded(name: str) -> Channel | None:
    try:
        return CHANNELS.get(name)
    except BadInputError as error:
        logger.error("%s", error)
        return None


def _asked(name: str, ask: Callable[[], Answer]) -> Answer:
    try:
        return ask()
    except (StoreError, NewerVersionError, _FaultyError):
        # The first two are of the inputs, which are read as they are gone through.
        raise
    except Exception as error:
        logger.exception("the %s channel of %s raised", name, CHANNELS.origin(name))
        raise _FaultyError(f"raised {type(error).__name__}") from error


def _text(said: object) -> str:
    """A plug-in's text as a document can hold it."""
    return str(said)[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
