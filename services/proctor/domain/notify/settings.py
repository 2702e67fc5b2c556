"""Where an operator has notifications sent, and of what: the targets, the rules, and whom suites may name.

Targets' addresses and keys are secrets: nothing here repeats one, not even where it is wrong.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Final, Self

from pydantic import Discriminator, Field, StringConstraints, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.domain.host import is_loopback
from proctor.domain.operator_json import operator_object
from proctor.domain.problems import path_text, quoted
from proctor.domain.url import UrlFault, read_url

#: The variable, for messages.
NOTIFY: Final = "PROCTOR_NOTIFY"
_EXAMPLE: Final = (
    '{"targets": {"ml-chat": "slack://…"}, "rules": [{"to": ["ml-chat"], "on": ["review", "block"], '
    '"suites": ["gsm8k-*"]}]}'
)
#: No quotes, spaces or comments, which mail allows in the part before the @ and programs read in different ways.
_ADDRESS: Final = re.compile(r"[A-Za-z0-9._%+-]{1,64}@([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+)", re.ASCII)
_KEY_PREFIX: Final = "whsec_"
#: Of a key, as Standard Webhooks has them.
_KEY_BYTES: Final = range(24, 65)

TargetName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
_Domain = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+$", to_lower=True)]
_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=512)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_AppriseUrl = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+://\S+$", max_length=8192)]


class Occasion(StrEnum):
    """What somebody is told of."""

    APPROVE = "approve"
    REVIEW = "review"
    BLOCK = "block"


#: What people are told of unless a rule says otherwise, and what those whom a suite names are told of.
FAILURES: Final = (Occasion.REVIEW, Occasion.BLOCK)


class EventSink(Frozen):
    """Where decisions go as CloudEvents, signed as Standard Webhooks."""

    cloudevents: str = Field(max_length=2048)
    """An https URL, or http on loopback."""
    secrets: tuple[str, ...] = Field(min_length=1, max_length=2, repr=False)
    """Keys that a receiver knows the sender by, `whsec_` and base64; two while one is changed for the other."""

    @model_validator(mode="after")
    def _is_private_on_its_way(self) -> Self:
        try:
            url = read_url(self.cloudevents)
        except UrlFault as odd:
            raise PydanticCustomError("odd_url", "cloudevents {fault}; {mend}", odd.__dict__) from None
        if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
            raise PydanticCustomError("clear_text", "cloudevents is neither https nor http on loopback; use https")
        for secret in self.secrets:
            if key_of(secret) is None:
                raise PydanticCustomError(
                    "odd_secret",
                    "secrets holds what is no key; write whsec_ and the base64 of 24 to 64 random bytes, as "
                    "`echo whsec_$(openssl rand -base64 32)` prints one",
                )
        return self


def _form_of(target: object) -> str:
    return "url" if isinstance(target, str) else "sink"


#: By its form, so that what is wrong is said of what was meant.
_Target = Annotated[Annotated[_AppriseUrl, Tag("url")] | Annotated[EventSink, Tag("sink")], Discriminator(_form_of)]


class Mail(Frozen):
    """How mail is sent, and to whom suites may have it sent."""

    server: _AppriseUrl = Field(repr=False)
    """apprise's URL of the mail server, without recipients."""
    domains: tuple[_Domain, ...] = Field(default=(), max_length=200)
    """Suites may name addresses of these domains; those below them are others."""


class NotifyRule(Frozen):
    """Which decisions are told to whom."""

    to: tuple[_Name, ...] = Field(min_length=1, max_length=50)
    """Targets, or mail addresses."""
    on: tuple[Occasion, ...] = Field(default=FAILURES, min_length=1)
    suites: tuple[_Pattern, ...] = Field(default=("*",), min_length=1, max_length=200)
    """Patterns of suites' ids, with `*`, `?` and `[…]`."""
    models: tuple[_Pattern, ...] = Field(default=("*",), min_length=1, max_length=200)
    """Patterns of model ids."""

    def is_of(self, occasion: Occasion, suite: str, model: str) -> bool:
        """Whether it says who is told of this."""
        of_suite = any(fnmatchcase(suite, one) for one in self.suites)
        return occasion in self.on and of_suite and any(fnmatchcase(model, one) for one in self.models)


class NotifySettings(Frozen):
    """The operator's JSON."""

    targets: dict[TargetName, _Target] = Field(default_factory=dict, max_length=200, repr=False)
    """Name → apprise's URL of a chat or of any other service that it knows, or a sink of CloudEvents."""
    rules: tuple[NotifyRule, ...] = Field(default=(), max_length=1000)
    mail: Mail | None = Field(default=None, repr=False)
    names: dict[_Name, tuple[_Name, ...]] = Field(default_factory=dict, max_length=10_000)
    """What suites may write in audit_owner and notify_on_failure, besides addresses → targets or mail addresses."""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        said = [(f"rules[{number}].to", rule.to) for number, rule in enumerate(self.rules)]
        for where, names in [*said, *((f"names.{name}", told) for name, told in self.names.items())]:
            for name in names:
                if name in self.targets or (self.mail is not None and is_mail_address(name)):
                    continue
                lacks = "is an address, and there is no mail.server to send to it"
                fault = lacks if is_mail_address(name) else "is neither a target nor a mail address"
                raise PydanticCustomError(
                    "leads_nowhere",
                    "{where} names {name}, which {fault}",
                    {"where": where, "name": quoted(name), "fault": fault},
                )
        return self


@dataclass(frozen=True)
class Notifications:
    """What the operator says, and where it was read."""

    said: NotifySettings = field(default_factory=NotifySettings)
    file: str = ""
    """The file that it was read from; empty where it stood in the variable."""

    def __bool__(self) -> bool:
        return bool(self.said.targets) or self.said.mail is not None

    def written(self) -> str:
        """What tells a child process the same."""
        if self.file:
            return f"@{self.file}"
        return json.dumps(self.said.plain()) if self else ""


NOBODY: Final = Notifications()


def parse_notifications(text: str, *, source: str, file: str = "") -> Notifications:
    """Read where notifications go.

    Raises:
        BadInputError: with the place and what is wrong there; no value is repeated.
    """
    found = operator_object(text, source=source, example=_EXAMPLE)
    try:
        return Notifications(NotifySettings.model_validate(found), file)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        # The form of a target is no key of its own.
        loc = tuple(part for depth, part in enumerate(fault["loc"]) if (depth, fault["loc"][0]) != (2, "targets"))
        where = f"{path_text(loc)}: " if loc else ""
        raise BadInputError(f"{source}: {where}{_words(fault['type'], fault['msg'])}") from None


def _words(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is an unknown key; docs/notifications.md has those that there are"
    if kind == "string_pattern_mismatch":
        return f"has not the form that it must have; write something like {_EXAMPLE}"
    return f"{message[:1].lower()}{message[1:]}"


def is_mail_address(text: str) -> bool:
    """Whether it is a mail address of the plain kind, without a display name."""
    return _ADDRESS.fullmatch(text) is not None


def domain_of(address: str) -> str:
    """The domain of a mail address, in lower case."""
    return address.rpartition("@")[2].lower()


def key_of(secret: str) -> bytes | None:
    """The bytes of a key of Standard Webhooks; None where it is none."""
    if not secret.startswith(_KEY_PREFIX):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(_KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) in _KEY_BYTES else None
