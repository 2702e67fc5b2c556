"""From a version of a registry to the audits that are asked for: one request for each of its suites."""

from __future__ import annotations

from proctor.domain.registered_version import RegisteredVersion
from proctor.domain.triggers import Triggers, request_key
from proctor.runtime.records.requests import AuditRequests, NewRequest


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
    new = requests.add(wanted)
    there = [one for one in wanted if one.key not in new and one.facts is not None]
    return len(new) + sum(requests.revive(one.key, one.facts) for one in there if one.facts is not None)
