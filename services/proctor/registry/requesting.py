"""From a version of a registry to the audits that are asked for: one request for each of its suites."""

from __future__ import annotations

import time
from typing import Final

from proctor.domain.registered_version import RegisteredVersion
from proctor.domain.triggers import Triggers, request_key
from proctor.runtime.records.requests import AuditRequests, NewRequest
from proctor.runtime.traces import tracing
from proctor.runtime.traces.span import Kind

#: Origins of which somebody told us.
_DELIVERED: Final = ("webhook", "alias")


def requests_of(triggers: Triggers, version: RegisteredVersion, origin: str) -> list[NewRequest]:
    """The requests of a version by the rules that are of it."""
    facts = None if version.tags is None else version.model_dump(mode="json")
    return [
        NewRequest(
            key=request_key(version, one.digest),
            registry=version.registry.value,
            model=version.name,
            version=version.version,
            suite_digest=one.digest,
            origin=origin,
            facts=facts,
            suite_id=one.suite.audit_suite_id,
        )
        for one in triggers.of(version)
    ]


def ask_for(requests: AuditRequests, wanted: list[NewRequest]) -> int:
    """Put requests on record that are not there, and have those looked at again that were refused for what the registry
    says otherwise by now; returns how many there are to be looked at.

    Raises:
        StoreError: when the record store does not take them.
    """
    since_ns = time.time_ns()
    new = requests.add(wanted)
    if tracing.is_on():
        for one in {one.key: one for one in wanted if one.key in new}.values():
            kind = Kind.SERVER if one.origin in _DELIVERED else Kind.INTERNAL
            said = {"proctor.request.origin": one.origin, "proctor.registry": one.registry}
            tracing.asked_for(one.key, f"{one.origin} {one.registry}", said, since_ns=since_ns, kind=kind)
    there = [one for one in wanted if one.key not in new and one.facts is not None]
    return len(new) + sum(requests.revive(one.key, one.facts) for one in there if one.facts is not None)
