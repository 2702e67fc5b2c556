"""What the settings point to outside of this machine: the operator's endpoints, object storage, Kubernetes, the ledger.

Of all these only the ledger's Redis is connected to, where the settings name one: an endpoint may be reachable for the
workers alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Final

from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.operator_endpoint import OtherEndpoints
from proctor.localstack.doctor.installed import Finding, State
from proctor.runtime.redis.promises import Verdict, judge, read_facts
from proctor.runtime.settings import ENDPOINTS, LedgerCheck, Settings

#: A person waits.
_LEDGER_TIMEOUT_S: Final = 2.0
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
    """The endpoints that suites may ask, what the ledger promises, and the client libraries that the settings need."""
    findings = [_endpoints(settings)]
    if settings.ledger_url != Settings.model_fields["ledger_url"].default:
        # Otherwise it is the local stack's own, which is started as it should be.
        findings.append(_ledger(settings))
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


def _ledger(settings: Settings) -> Finding:
    try:
        found = judge(read_facts(settings.ledger_url, timeout_s=_LEDGER_TIMEOUT_S))
    except BadInputError as error:
        return Finding("ledger", State.MISSING, str(error), "mend PROCTOR_LEDGER_URL")
    except StoreError as error:
        return Finding("ledger", State.WARNING, str(error), "start it, or mend PROCTOR_LEDGER_URL", required=False)
    worst = {one.verdict for one in found}
    said = "; ".join(one.found for one in found)
    mend = "; ".join(dict.fromkeys(one.mend for one in found if one.mend))
    if Verdict.BROKEN in worst and settings.ledger_check is LedgerCheck.REFUSE:
        return Finding("ledger", State.MISSING, said, f"{mend}; or accept it with PROCTOR_LEDGER_CHECK=warn")
    state = State.OK if worst == {Verdict.KEPT} else State.WARNING
    return Finding("ledger", state, said, mend, required=False)


def _names(names: Mapping[str, object] | list[str]) -> str:
    some = sorted(names)
    return ", ".join(some[:_SHOWN]) + (f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else "")


def _client(name: str, package: str, extra: str, why: str) -> Finding:
    if importlib.util.find_spec(package) is not None:
        return Finding(name, State.OK, f"{package} is installed")
    return Finding(name, State.MISSING, f"{package} is not installed; {why}", f"pip install 'proctor[{extra}]'")
