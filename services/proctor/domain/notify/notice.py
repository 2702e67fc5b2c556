"""The words of a notification: what was decided, why, on which model, and where the report is. No prompt, no answer.

They go to mail programs and chats, each with markup of its own, and hold names that others chose. Escaping is another
for each of them, so nothing is escaped: what begins markup, a mention or a link anywhere is written with the character
of full width that looks like it. apprise is told that it is plain text, and escapes for HTML once more.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from proctor.domain.decision import DecisionEvent, scope_caveat
from proctor.domain.notify.settings import Occasion
from proctor.domain.problems import visible

#: Of a name, in the title, which is one line of a mail's head, and below it; and of a sentence.
_MAX_IN_TITLE: Final = 60
_MAX_NAME: Final = 200
_MAX_TEXT: Final = 1_000
#: HTML, Markdown and its relatives in chats; mentions (@all, <!channel>) and emoji codes (:x:).
_MARKUP: Final = str.maketrans({mark: chr(ord(mark) + 0xFEE0) for mark in "<>&@*`~[]|#$\\^"})
_LINK: Final = re.compile(r"://|:(?=[\w+-]+:)", re.ASCII)
_WORDS: Final = {
    Occasion.APPROVE: "approved",
    Occasion.REVIEW: "waiting for review",
    Occasion.BLOCK: "blocked",
}


class Notice(NamedTuple):
    """A message: one line, and the lines below it."""

    title: str
    body: str
    failure: bool
    """Whether it tells of a block, for services that colour what they show."""


def notice_of(event: DecisionEvent, occasion: Occasion, *, report: str | None) -> Notice:
    """The notification of a decision.

    Args:
        event: the decision, as it is on record.
        occasion: what people are told of.
        report: the address of its page, where the deployment has any.
    """
    lines = [
        f"Decision: {event.outcome.value}",
        f"Model: {inert(event.model_id)} ({inert(event.model_digest)})",
        f"Suite: {inert(event.audit_suite_id)}",
    ]
    if (caveat := scope_caveat(event.outcome, event.scope)) is not None:
        lines.append(f"Scope: {inert(caveat, _MAX_TEXT)}")
    if event.reasons:
        lines.append(f"Reason: {inert(event.reasons[0].text, _MAX_TEXT)}")
    if (more := len(event.reasons) - 1) > 0:
        lines.append(f"and {more} more reason{'s' if more != 1 else ''} in the report")
    lines.append(f"Audit: {inert(event.audit_id)}")
    lines.append(f"Report: {report or f'proctor audit show {inert(event.audit_id)}'}")
    return Notice(
        title=f"Proctor: {inert(event.model_id, _MAX_IN_TITLE)} is {_WORDS[occasion]} "
        f"({inert(event.audit_suite_id, _MAX_IN_TITLE)})",
        body="\n".join(lines),
        failure=occasion is Occasion.BLOCK,
    )


def notice_of_a_test(target: str) -> Notice:
    """What a target is sent to see whether it can be reached."""
    body = f"A test of the notification target {inert(target)}. Nothing was decided."
    return Notice("Proctor: a test", body, failure=False)


def inert(text: str, most: int = _MAX_NAME) -> str:
    """The text on one line, without control characters, and with nothing that a mail program or a chat acts on."""
    plain = " ".join(visible(text).split())
    cut = plain if len(plain) <= most else plain[: most - 1] + "…"
    return _LINK.sub(lambda found: found[0].replace(":", "："), cut).translate(_MARKUP)
