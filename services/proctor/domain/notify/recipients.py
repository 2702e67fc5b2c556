"""Who is told of a decision: whom the operator's rules name, and whom the suite may name by the operator's leave. Pure.

A suite is anybody's text. So it names nobody but addresses of the domains that the operator lists, and words that the
operator has said the meaning of; never a URL.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.notify.settings import (
    FAILURES,
    EventSink,
    NotifySettings,
    Occasion,
    domain_of,
    is_mail_address,
)
from proctor.domain.suite import GovernanceSection

#: Whom one suite may have told of each decision: it could fill the mailboxes of a domain otherwise.
MAX_NAMED_BY_A_SUITE: Final = 20


class RecipientKind(StrEnum):
    """What a recipient is sent."""

    MESSAGE = "message"
    """Words for people, by mail or chat. Never sent twice, whatever becomes of the sender."""
    EVENT = "event"
    """A CloudEvent, which a receiver knows again by its id. Sent until it was taken."""


class Recipient(NamedTuple):
    """Somebody, or something, that is told."""

    kind: RecipientKind
    name: str
    """A target's name, or a mail address."""

    @property
    def digest(self) -> str:
        """What it is known by in the outbox: a target by its name, so that its address may change."""
        by = f"mail:{self.name.lower()}" if is_mail_address(self.name) else f"target:{self.name}"
        return bytes_digest(by.encode())


class Unheard(NamedTuple):
    """What a suite names that nobody is told by, and why."""

    name: str
    why: str


class Told(NamedTuple):
    """Who is told, each once, and who is not although the suite names them."""

    recipients: tuple[Recipient, ...]
    unheard: tuple[Unheard, ...]


def told_of(
    settings: NotifySettings, occasion: Occasion, *, suite: str, model: str, governance: GovernanceSection
) -> Told:
    """Who is told of what happened to an audit.

    Args:
        settings: the operator's.
        occasion: what happened.
        suite: the suite's id.
        model: the model's id.
        governance: what the suite says of who answers for it.
    """
    found = [name for rule in settings.rules if rule.is_of(occasion, suite, model) for name in rule.to]
    unheard: tuple[Unheard, ...] = ()
    if occasion in FAILURES:
        by_suite = named_by(settings, governance)
        found += by_suite.names
        unheard = by_suite.unheard
    recipients = (recipient_of(settings, name) for name in found)
    return Told(tuple({one.digest: one for one in recipients}.values()), unheard)


class NamedBySuite(NamedTuple):
    """What a suite's fields come to: targets and addresses, and what they do not come to."""

    names: tuple[str, ...]
    unheard: tuple[Unheard, ...]


def named_by(settings: NotifySettings, governance: GovernanceSection) -> NamedBySuite:
    """Whom a suite may have told of a review or a block, and whom not."""
    names, unheard = list[str](), list[Unheard]()
    for name in dict.fromkeys(governance.notify_on_failure):
        meant = _meant(settings, name)
        if isinstance(meant, Unheard):
            unheard.append(meant)
        else:
            names += meant
    # An owner is a word of any kind: one that the operator knows nothing of is no fault.
    owner = _meant(settings, governance.audit_owner)
    if not isinstance(owner, Unheard):
        names += owner
    distinct = list(dict.fromkeys(names))
    too_many = f"a suite has at most {MAX_NAMED_BY_A_SUITE} told"
    unheard += [Unheard(name, too_many) for name in distinct[MAX_NAMED_BY_A_SUITE:]]
    return NamedBySuite(tuple(distinct[:MAX_NAMED_BY_A_SUITE]), tuple(unheard))


def recipient_of(settings: NotifySettings, name: str) -> Recipient:
    """The recipient that a target's name or a mail address stands for."""
    is_sink = isinstance(settings.targets.get(name), EventSink)
    return Recipient(RecipientKind.EVENT if is_sink else RecipientKind.MESSAGE, name)


def _meant(settings: NotifySettings, name: str) -> tuple[str, ...] | Unheard:
    if name in settings.names:
        return settings.names[name]
    if not is_mail_address(name):
        return Unheard(name, "it is no mail address, and the operator has no such name")
    if settings.mail is None:
        return Unheard(name, "no mail server is configured here")
    if domain_of(name) not in settings.mail.domains:
        return Unheard(name, "suites may not name addresses of its domain here")
    return (name,)
