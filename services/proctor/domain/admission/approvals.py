"""What stands, as a list that a ValidatingAdmissionPolicy reads: the data of a ConfigMap. Pure.

A policy has neither a clock nor JSON. So an entry is lines: `approve` or `refuse`; when it ends, or `-`; the entry of
the decision log that it rests on; and of a refusal what is said. The list itself says until when it is good, so that
one that nobody keeps any more approves nothing. The API server's time of a new object is the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from proctor.domain.admission.reference import approval_key, references_of
from proctor.domain.admission.verdict import Verdict
from proctor.domain.standing import as_text

#: A key that no version has: '_' stands before two hexadecimal digits in theirs.
KEPT_UNTIL: Final = "_kept-until"
#: Of a ConfigMap's data the API server takes 1,048,576.
MAX_BYTES: Final = 1_000_000
_NEVER: Final = "-"


class ApprovalList(NamedTuple):
    """A list, and how much of it had no place."""

    data: Mapping[str, str]
    left_out: int
    """Versions that are not on it; a policy refuses them as it refuses what was never audited."""


def approval_list(verdicts: Iterable[Verdict]) -> ApprovalList:
    """The list over verdicts in the order of their weight; approvals have a place before refusals."""
    data, size, left_out = dict[str, str](), 0, 0
    for verdict in sorted(verdicts, key=lambda one: not one.admits):
        (reference,) = references_of(verdict.reference)
        key, value = approval_key(reference), _value(verdict)
        takes = 0 if key is None else len(key) + len(value.encode())
        if key is None or size + takes > MAX_BYTES:
            left_out += 1
        else:
            data[key] = value
            size += takes
    return ApprovalList(data, left_out)


def kept_until(time: datetime) -> str:
    """As the list says it."""
    return as_text(time)


def _value(verdict: Verdict) -> str:
    entry = f"entry {verdict.sequence}"
    if verdict.admits:
        return "\n".join(("approve", verdict.until or _NEVER, entry))
    return "\n".join(("refuse", _NEVER, entry, verdict.sentence))
