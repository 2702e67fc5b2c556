"""Which trace an audit has, and how that travels with a message.

An audit outlives the processes that work on it: it is paused, resumed after days, found by a reconciler. So its trace
is no context that somebody would have to keep, but follows from its row: whoever reads that joins the trace, and who
does not is told in the message's header. The audit's id alone would not do: two deployments that audit the same model
by the same suite give their audits the same ids, and may send their traces to the same place.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple

#: Of a message: W3C Trace Context. Whoever does not know it leaves it alone.
HEADER: Final = "traceparent"
_FORM: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 0x01


class SpanIdentity(NamedTuple):
    """A span, as others name it."""

    trace_id: int
    span_id: int
    sampled: bool = True
    """Whether it is recorded, and what comes below it is to be."""

    @property
    def header(self) -> str:
        """The value of its header."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{_SAMPLED if self.sampled else 0:02x}"


def identity_in(header: object) -> SpanIdentity | None:
    """The span that a header names; None where it names none, whatever it is."""
    found = _FORM.fullmatch(header) if isinstance(header, str) else None
    if found is None:
        return None
    trace_id, span_id, flags = (int(one, 16) for one in found.groups())
    return SpanIdentity(trace_id, span_id, bool(flags & _SAMPLED)) if trace_id and span_id else None


def audit_trace(audit_id: str, created_at: str) -> SpanIdentity:
    """The span at the root of an audit's trace, by what stands in its row."""
    return root_of(_number(16, "audit", audit_id, created_at))


def root_of(trace_id: int) -> SpanIdentity:
    """The span at the root of an audit's trace, by the trace."""
    return SpanIdentity(trace_id, _number(8, "root", f"{trace_id:032x}"))


def request_trace(key: str) -> SpanIdentity:
    """The span in which an audit was asked for: before it is begun it has no row, and another process begins it."""
    return root_of(_number(16, "request", key))


def _number(length: int, *parts: str) -> int:
    # No part has a newline, and 0 is no identity.
    return int.from_bytes(sha256("\n".join(("proctor", *parts)).encode("utf-8", "replace")).digest()[:length]) or 1
