"""What a run that has come to rest may leave behind: keys with an owner and a time to live, and no more."""

from __future__ import annotations

import re
from collections import Counter

from tests.chaos.findings import Findings
from tests.chaos.stores import Stores

_STAGE = "parts|plan|queue|leases|attempts|failures|losses|done|dead|refused|graded|fired"
_OF_AUDIT = re.compile(rf"proctor:\{{(?P<audit>[^}}]+)\}}:(stages|asked|spent|[^:]+:({_STAGE}))")
#: These are all audits': of a pool of servers, and of the workers.
_SHARED = re.compile(
    r"proctor:(pool:\{[0-9a-f]+\}:(credits|claimed|wants|pace|breaker|probes|suspects)"
    r"|turn:retention|pools:\{working\}|presence:\{presence\}:(seen|workers|held)|tries:\{[0-9a-f]{32}\})"
)


def check_remains(stores: Stores, audits: set[str], findings: Findings) -> None:
    """Invariant 5: no message, no credit, no key without an owner or a time to live."""
    for key, seconds in stores.keys().items():
        owner = _OF_AUDIT.fullmatch(key)
        owned = owner["audit"] in audits if owner is not None else _SHARED.fullmatch(key) is not None
        if not owned:
            findings.broken(5, key, "the key has no owner")
        elif seconds == -1:
            findings.broken(5, key, "the key has no time to live")
    if held := stores.held():
        findings.broken(5, "pools", f"{len(held)} are held or wanted by nobody, e.g. {held[0]}")
    findings.postdated = len(stores.postdated())
    if waiting := Counter(stores.waiting()):
        findings.broken(5, "broker", f"messages are left: {dict(waiting)}")
