"""Who calls, and what they may do: a person at the machine's own terminal, or a caller of a gateway by name."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from proctor.domain.errors import BadInputError, ProctorError

#: Small letters only: two names that differ in their case alone would be one to a person who reads them.
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
#: Whoever is at the terminal of the machine that holds the stores, and callers of a gateway that asks for no token.
LOCAL_NAME: Final = "local"
#: Whoever shows the one token of PROCTOR_GATEWAY_TOKEN.
DEFAULT_NAME: Final = "default"
#: The operator's triggers, on behalf of whoever registered a version.
TRIGGERS_NAME: Final = "triggers"
#: Names that no token of a list may have.
RESERVED: Final = frozenset({LOCAL_NAME, DEFAULT_NAME, TRIGGERS_NAME})


#: How somebody is known, beside `oidc:` and an issuer (`Submitter.via`).
BY_TERMINAL: Final = "terminal"
BY_TOKEN: Final = "token"  # noqa: S105, no password
BY_CERTIFICATE: Final = "certificate"
BY_TRIGGER: Final = "trigger"


class Role(StrEnum):
    """What a caller may do; each role includes those before it."""

    VIEWER = "viewer"
    """Look at audits."""
    OPERATOR = "operator"
    """Begin audits and steer them, too."""
    REVIEWER = "reviewer"
    """Sign off on decisions, too."""


_RANK: Final = {role: rank for rank, role in enumerate(Role)}


class UnknownCallerError(ProctorError):
    """Somebody called without a token, or with one that is not good."""


class ForbiddenError(BadInputError):
    """Somebody is known, and may not do what they asked for."""


class Submitter(NamedTuple):
    """Who calls, what they may do, and whether the audits of others are theirs to see and to steer."""

    name: str
    sees_all: bool = False
    role: Role = Role.OPERATOR
    via: str = BY_TOKEN
    """How they are known: `terminal`, `token`, `certificate`, `trigger`, or `oidc:` and the issuer."""

    @property
    def shares(self) -> bool:
        """Whether the same suite goes on with the same audit, whoever of those who share it submits it.

        A name has audits of its own: else one submitter could raise, pause or squat on what another pays for.
        """
        return self.name in RESERVED

    def may(self, role: Role) -> bool:
        """Whether they may do what takes this role."""
        return _RANK[self.role] >= _RANK[role]


#: Whoever can run commands here can write to the stores as well.
LOCAL: Final = Submitter(LOCAL_NAME, sees_all=True, role=Role.REVIEWER, via=BY_TERMINAL)
#: Its token was the only one before there were names, and everything was its holder's to see. A secret that is shared
#: is nobody's signature.
DEFAULT: Final = Submitter(DEFAULT_NAME, sees_all=True, role=Role.OPERATOR)
#: Holders of the token that a gateway of a home drew for itself: only who can read that home's files has it, who is
#: whoever could give the commands there.
OWN: Final = Submitter(DEFAULT_NAME, sees_all=True, role=Role.REVIEWER, via=BY_TERMINAL)
#: Holders of a certificate of the operator's authority, who are not told apart.
CERTIFIED: Final = Submitter(LOCAL_NAME, sees_all=True, role=Role.OPERATOR, via=BY_CERTIFICATE)
TRIGGERS: Final = Submitter(TRIGGERS_NAME, sees_all=True, role=Role.OPERATOR, via=BY_TRIGGER)


def hold_to(caller: Submitter, role: Role) -> None:
    """Refuse what a caller's role does not include.

    Raises:
        ForbiddenError: when it does not.
    """
    if not caller.may(role):
        raise ForbiddenError(
            f"'{caller.name}' is {_ARTICLE[caller.role]}, and this takes {_ARTICLE[role]}: ask who runs this "
            "Proctor for the role"
        )


_ARTICLE: Final = {role: f"{'an' if role is Role.OPERATOR else 'a'} {role.value}" for role in Role}


def is_name(text: str) -> bool:
    """Whether a text can be a submitter's name."""
    return _NAME.fullmatch(text) is not None
