"""Requests on record become audits: the version is looked up where need be, the suite filled in, the audit begun.

A request is claimed for a while, so that of several gateways one looks at it. That is for economy alone: an audit's row
is written in one transaction with its request's, so a gateway that was thought dead and was slow begins no second one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError, NewerVersionError, ProctorError, RegistryError
from proctor.domain.registered_version import RegisteredVersion, RegistryKind
from proctor.domain.submitter import TRIGGERS
from proctor.domain.triggers import Triggers, TriggerSuite, filled
from proctor.gateway.audits import LocalDesk
from proctor.registry.model_registry import VersionGoneError
from proctor.registry.version_source import VersionSource
from proctor.router.submit.gathering import gather
from proctor.runtime.logs.context import saying
from proctor.runtime.records.requests import AuditRequest, RequestState, RequestTakenError

logger = logging.getLogger(__name__)

#: For which a claimed request is left to who claimed it: reading a large benchmark takes less.
_HOLD_S: Final = 120.0
#: Before what a store or a registry kept from being started is looked at again, and what a ceiling did.
_AWAY_S: Final = 10.0
_CEILING_S: Final = 30.0
#: Requests that a round starts; the next round goes on.
_A_ROUND: Final = 20


class Starter:
    """Starts what is asked for by the suites of a trigger file.

    Args:
        triggers: the file.
        desk: where audits begin.
        sources: the registries that can be asked for a version.
        give_way: waits for what is more urgent, before each audit.
    """

    def __init__(
        self,
        triggers: Triggers,
        desk: LocalDesk,
        sources: Mapping[RegistryKind, VersionSource],
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._suites: dict[str, list[TriggerSuite]] = {}
        for one in triggers.suites:
            self._suites.setdefault(one.digest, []).append(one)
        self._desk = desk.of(TRIGGERS)
        self._requests = desk.records.requests
        self._sources = sources
        self._give_way = give_way

    def reopen(self) -> None:
        """Look again at what was refused: the operator may have mended what stood in its way."""
        again = self._requests.reopen(list(self._suites))
        if again:
            logger.info("%d refused requests are looked at again", again)

    def round(self, most: int = _A_ROUND) -> bool:
        """Look at requests that wait; returns whether more may be there.

        Raises:
            StoreError: when the record store does not answer.
        """
        claimed = self._requests.claim(list(self._suites), hold_s=_HOLD_S, most=most)
        for request in claimed:
            self._give_way()
            self._look_at(request)
        return len(claimed) == most

    def _look_at(self, request: AuditRequest) -> None:
        try:
            self._start(request)
        except LimitError as error:
            self._requests.set_back(request.key, str(error), wait_s=_CEILING_S)
        except (BadInputError, VersionGoneError) as error:
            self._refuse(request, error)
        except RegistryError as error:
            self._requests.set_back(request.key, str(error), wait_s=_AWAY_S)
        except NewerVersionError as error:
            self._requests.set_back(request.key, str(error), wait_s=_CEILING_S)
        except ProctorError as error:
            self._kept(request, error)

    def _start(self, request: AuditRequest) -> None:
        version = self._version(request)
        one = next((one for one in self._suites[request.suite_digest] if one.rule.meets(version)), None)
        if one is None or version.is_own:
            self._requests.settle(request.key, RequestState.SKIPPED, "no rule is of what the registry says of it")
            return
        settings, suite = self._desk.settings, filled(one, version)
        folder = Path(one.path).parent
        data = gather(suite, folder, settings.bundle, settings.benchmarks, hub=settings.hub)
        try:
            begun = self._desk.begin(data, one.rule.priority, request=request.key)
        except RequestTakenError:
            # Another gateway thought that this one was gone.
            return
        with saying(audit_id=begun.audit.audit_id):
            logger.info(
                "audit %s of version %s of %s is begun, by rule %s",
                begun.audit.audit_id,
                version.version,
                version.name,
                one.rule.name,
            )

    def _version(self, request: AuditRequest) -> RegisteredVersion:
        if request.facts is not None:
            return RegisteredVersion.model_validate(request.facts)
        registry = RegistryKind(request.registry)
        asked = RegisteredVersion(registry=registry, name=request.model, version=request.version)
        source = self._sources.get(registry)
        if source is None:
            raise BadInputError(
                f"version {request.version} is to be asked of {registry}, and PROCTOR_REGISTRY_URI is not set"
            )
        return source.look_up(asked)

    def _refuse(self, request: AuditRequest, error: ProctorError) -> None:
        logger.warning("request %s is refused: %s", request.key, error)
        self._requests.settle(request.key, RequestState.REFUSED, str(error))

    def _kept(self, request: AuditRequest, error: ProctorError) -> None:
        """A store or the broker did not answer. Where the audit is on record by then, the router goes on with it."""
        logger.warning("request %s waits: %s", request.key, error)
        self._requests.set_back(request.key, str(error), wait_s=_AWAY_S)
