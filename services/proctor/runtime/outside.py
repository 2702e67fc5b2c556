"""What the settings point to outside of this machine: the operator's endpoints, object storage, Kubernetes.

Nothing is connected to: an endpoint may be reachable for the workers alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Final

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OtherEndpoints
from proctor.runtime.machine import Finding, State
from proctor.runtime.settings import ENDPOINTS, Settings

#: Endpoints whose names a finding shows.
_SHOWN: Final = 5


def readable_settings(environ: Mapping[str, str]) -> tuple[Settings, list[Finding]]:
    """The settings; where the endpoints cannot be read, those without endpoints and what is wrong with them.

    Raises:
        BadInputError: when another variable cannot be used.
    """
    try:
        return Settings.from_environment(environ), []
    except BadInputError as error:
        without = Settings.from_environment({**environ, ENDPOINTS: ""})
        fault, _, mend = str(error).rpartition("; ")
        return without, [Finding("endpoints", State.MISSING, fault or mend, mend)]


def examine_outside(settings: Settings) -> list[Finding]:
    """The endpoints that suites may ask, and the client libraries that the settings need."""
    findings = [_endpoints(settings)]
    if settings.artifacts.startswith("s3://"):
        findings.append(_client("object storage", "obstore", "s3", f"{settings.artifacts} needs it"))
    sought = [name for name, one in settings.endpoints.items() if isinstance(one.discovery, EndpointSliceDiscovery)]
    if sought:
        findings.append(_client("Kubernetes", "kubernetes", "kubernetes", f"{_names(sought)} needs it"))
    return findings


def _endpoints(settings: Settings) -> Finding:
    named = f"{len(settings.endpoints)} named ({_names(settings.endpoints)})" if settings.endpoints else "none named"
    others = {
        OtherEndpoints.NONE: "no other URL may be asked",
        OtherEndpoints.LOOPBACK: "other URLs on this machine only",
        OtherEndpoints.PUBLIC: "other URLs only where encrypted and public",
        OtherEndpoints.ANY: "any other URL",
    }[settings.other_endpoints]
    return Finding("endpoints", State.OK, f"{named}; {others}", required=False)


def _names(names: Mapping[str, object] | list[str]) -> str:
    some = sorted(names)
    return ", ".join(some[:_SHOWN]) + (f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else "")


def _client(name: str, package: str, extra: str, why: str) -> Finding:
    if importlib.util.find_spec(package) is not None:
        return Finding(name, State.OK, f"{package} is installed")
    return Finding(name, State.MISSING, f"{package} is not installed; {why}", f"pip install 'proctor[{extra}]'")
