"""Who submits audits: a person at the machine's own terminal, or a caller of a gateway by the name of its token."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

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


class Submitter(NamedTuple):
    """Who calls, and whether the audits of others are theirs to see and to steer."""

    name: str
    operator: bool = False

    @property
    def shares(self) -> bool:
        """Whether the same suite goes on with the same audit, whoever of those who share it submits it.

        A name has audits of its own: else one submitter could raise, pause or squat on what another pays for.
        """
        return self.name in RESERVED


LOCAL: Final = Submitter(LOCAL_NAME, operator=True)
#: Its token was the only one before there were names, and everything was its holder's to see.
DEFAULT: Final = Submitter(DEFAULT_NAME, operator=True)
TRIGGERS: Final = Submitter(TRIGGERS_NAME, operator=True)


def is_name(text: str) -> bool:
    """Whether a text can be a submitter's name."""
    return _NAME.fullmatch(text) is not None
