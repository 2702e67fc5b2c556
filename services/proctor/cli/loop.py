"""A registered version on its way: MLflow's webhook, the audit that begins by itself, and what comes back.

As `proctor demo` shows it: each step is said as it is seen, from what the stores hold and not from what was hoped for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from proctor.cli.terminal import say
from proctor.domain.errors import ProctorError
from proctor.domain.registered_version import MODEL_DIGEST_TAG, OWN_TAGS, RegisteredVersion, RegistryKind
from proctor.domain.triggers import Triggers, request_key
from proctor.registry.mlflow_client import MlflowClient
from proctor.runtime.records.requests import AuditRequest, AuditRequests, RequestState

#: Between two looks at what was asked for.
_LOOK_S: Final = 0.1
#: A delivery takes less than a second; the gateway itself reads the registry after a minute.
_PATIENCE_S: Final = 120.0
_HOW: Final = {
    "webhook": "MLflow's signed delivery told the gateway of",
    "reconciler": "none came, and the gateway found in the registry",
}
_DECISION_TAG: Final = f"{OWN_TAGS}decision"


class Registered(NamedTuple):
    """A version of a model, and the request for its audit that is to come of it."""

    name: str
    version: str
    key: str


def register(client: MlflowClient, name: str, digest: str, triggers: Triggers) -> Registered:
    """Register a new version of a served model, as a training pipeline would: by the server's own interface.

    Raises:
        RegistryError: when the registry cannot be reached or refuses.
        ProctorError: when no suite of the triggers is for it, or several are.
    """
    tags = {MODEL_DIGEST_TAG: digest}
    client.create_model(name, tags={}, description="")
    created = client.create_version(name, source=f"triton://local-triton/{name}", tags=tags, description="")
    version = RegisteredVersion(registry=RegistryKind.MLFLOW, name=name, version=created.version, tags=tags)
    suites = triggers.of(version)
    if len(suites) != 1:
        raise ProctorError(f"{len(suites)} suites of the trigger file are for {name}, and one is to be")
    say(f"Registered: {name}, version {created.version}, in MLflow.", err=True)
    return Registered(name, created.version, request_key(version, suites[0].digest))


def begun(
    registered: Sequence[Registered],
    requests: AuditRequests,
    check: Callable[[], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, AuditRequest]:
    """Wait until the audit of each version has begun by itself; gives the requests by the models' names.

    Args:
        registered: what was registered.
        requests: what is asked for.
        check: called between looks; raises when it is in vain to go on.
        clock: seconds, never going back.
        sleep: waits so many seconds.

    Raises:
        ProctorError: an audit was refused, or nobody asked for one in time.
    """
    names, told = {one.key: one for one in registered}, set[str]()
    until_s, found = clock() + _PATIENCE_S, dict[str, AuditRequest]()
    while len(found) < len(names):
        for key, request in requests.find(set(names) - {one.key for one in found.values()}).items():
            what = f"{names[key].name}, version {names[key].version}"
            if key not in told:
                told.add(key)
                say(f"Webhook: {_HOW.get(request.origin, request.origin)} {what}.", err=True)
            if request.state in (RequestState.REFUSED, RequestState.SKIPPED):
                raise ProctorError(f"no audit of {what} is begun: {request.detail}")
            if request.audit_id is not None:
                found[names[key].name] = request
                say(f"Audit: {request.audit_id} of {what} has begun by itself.", err=True)
        check()
        if len(found) < len(names):
            if clock() > until_s:
                late = ", ".join(one.name for one in registered if one.name not in found)
                raise ProctorError(f"no audit of {late} has begun within {_PATIENCE_S:g} s; see logs/gateway.log")
            sleep(_LOOK_S)
    return found


def came_back(client: MlflowClient, name: str, version: str) -> dict[str, Any]:
    """What the registry holds of a version by now: its decision, our other tags, and its aliases.

    Raises:
        RegistryError: when the registry cannot be reached or refuses.
    """
    held = client.version(name, version)
    ours = sorted(key for key in held.tags if key.startswith(OWN_TAGS))
    aliases = sorted(held.aliases)
    pointed = f", and the alias {', '.join(aliases)} points at it" if aliases else ", and no alias points at it"
    say(
        f"Tags: {name}, version {version}, has {_DECISION_TAG} = {held.tags.get(_DECISION_TAG, '(none)')} and "
        f"{len(ours) - 1} more of Proctor's{pointed}.",
        err=True,
    )
    return {"decision": held.tags.get(_DECISION_TAG), "tags": ours, "aliases": aliases}


def told(
    registered: Sequence[Registered], requests: Mapping[str, AuditRequest], back: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The way of each version as plain data."""
    return [
        {
            "model": one.name,
            "version": one.version,
            "asked_by": requests[one.name].origin,
            "audit_id": requests[one.name].audit_id,
            **back[one.name],
        }
        for one in registered
    ]
