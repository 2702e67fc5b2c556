"""Which datasets of the hub may be read here, and whose hub it is. The operator says it, never a suite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final

from proctor.domain.errors import BadInputError

#: Its own place for datasets is `owner/name`. No part begins with a dot, so none is a folder's `.` or `..`.
HUB_ID: Final = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$"
HUB_REVISION: Final = r"^[0-9a-f]{40}$"
DEFAULT_ENDPOINT: Final = "https://huggingface.co"
_PATTERN: Final = re.compile(r"[A-Za-z0-9._*?-]{1,96}/[A-Za-z0-9._*?-]{1,96}")
_EVERY: Final = "*/*"


@dataclass(frozen=True)
class HubAccess:
    """What an operator lets suites have of the hub."""

    datasets: tuple[str, ...] | None = None
    """Patterns of `owner/name`, in which * stands for anything but a stroke; None where the operator has said nothing,
    which means every dataset to the person who starts an audit here, and none to a caller from elsewhere."""
    endpoint: str = DEFAULT_ENDPOINT
    """The hub's address."""
    token: str | None = field(default=None, repr=False)
    """For datasets that are not public; sent to the hub itself alone."""

    def of_others(self) -> HubAccess:
        """What callers have who are not trusted with the operator's machine, network and token."""
        return replace(self, datasets=self.datasets or ())

    def check(self, hub_id: str, revision: str | None) -> None:
        """See to it that a suite names a dataset that may be read, by a commit.

        Raises:
            BadInputError: when it does not.
        """
        if not re.fullmatch(HUB_ID, hub_id) or revision is None or not re.fullmatch(HUB_REVISION, revision):
            raise BadInputError(
                f"dataset_config.hub_id {hub_id!r} at {revision!r} names no dataset of the hub: write owner/name, and "
                "in hub_revision the 40 hex digits of a commit"
            )
        if not any(
            _matches(pattern, hub_id) for pattern in (self.datasets if self.datasets is not None else (_EVERY,))
        ):
            raise BadInputError(
                f"dataset_config.hub_id is {hub_id!r}, and the operator of this machine lets suites read "
                f"{', '.join(self.datasets or ()) or 'no datasets'} of the hub: ask for it in PROCTOR_HUB_DATASETS, or "
                "send the items along as a file (dataset_config.path)"
            )


#: Where the operator has said nothing.
UNSAID_HUB: Final = HubAccess()
#: For suites from nowhere that is known.
NO_HUB: Final = HubAccess(datasets=())


def hub_patterns(text: str | None) -> tuple[str, ...] | None:
    """The patterns of PROCTOR_HUB_DATASETS, parted by commas or spaces; None where it is not set.

    Raises:
        BadInputError: for what is no pattern of `owner/name`.
    """
    if text is None:
        return None
    patterns = tuple(text.replace(",", " ").split())
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern):
            raise BadInputError(
                f"PROCTOR_HUB_DATASETS holds {pattern[:80]!r}; write owner/name, owner/* or */*, parted by commas, or "
                "nothing to let suites read no dataset of the hub"
            )
    return patterns


def written_patterns(patterns: Sequence[str]) -> str:
    """The text that `hub_patterns` reads back as the same patterns."""
    return ",".join(patterns)


def _matches(pattern: str, hub_id: str) -> bool:
    # Part by part: a star does not reach over the stroke.
    return all(fnmatchcase(part, own) for part, own in zip(hub_id.split("/"), pattern.split("/"), strict=True))
