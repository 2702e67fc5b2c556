"""Writing what stands of a version to the registry: one writer a model, and always from the record.

An event only says of which audit something changed. What is written is read from the record while the model's lock is
held, so an event that comes late, twice, or beside another one writes what holds by then, and never what it brought.
"""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Final

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import RegistryError
from proctor.domain.registered_version import RegistryKind, registered_name
from proctor.registry.model_registry import EvidenceRegistry, ModelRegistry, VersionGoneError, kind_of, open_registry
from proctor.registry.standing_record import Sources, standing_record
from proctor.registry.version_record import VersionRecord
from proctor.runtime.records.audited_versions import VersionName
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.exclusive import exclusive
from proctor.runtime.traces import tracing
from proctor.runtime.traces.span import Kind

logger = logging.getLogger(__name__)

#: How long another writer of the same model may take: a slow server, and a report over a slow line.
PATIENCE_S: Final = 180.0


def write_standing(uri: str, records_url: str, sources: Sources, audit_id: str) -> str:
    """Write what stands for an audit's version, wherever a decision on its weights was written before.

    Args:
        uri: the registry.
        records_url: whose lock is held meanwhile.
        sources: where what stands is read.
        audit_id: the audit because of which is written.

    Returns:
        The version that holds the audit's decision.

    Raises:
        RegistryUnavailableError: the registry cannot be reached now.
        VersionGoneError: the version was deleted.
        RegistryError: the registry refuses, or nothing is on record to be written.
        StoreError: the record store does not answer, or another writer hangs.
    """
    plain = sources.records.decision(audit_id)
    if plain is None:
        raise RegistryError(
            f"no decision of audit {audit_id} is on record here, so nothing is written: the registry worker needs the "
            "PROCTOR_RECORDS_URL of the scorers"
        )
    event = decision_of(audit_id, plain)
    with tracing.span("write registry", {"proctor.decision": event.outcome.value}, kind=Kind.CLIENT):
        return _written(uri, records_url, sources, event)


def _written(uri: str, records_url: str, sources: Sources, event: DecisionEvent) -> str:
    with closing(open_registry(uri)) as registry, exclusive(records_url, _lock(event), patience_s=PATIENCE_S):
        version = _version_of(registry, sources, event)
        record = _write(registry, sources, event, version)
        sources.records.register(event.audit_id, version)
        for other in sorted(_others(registry, sources, event) - {version}):
            try:
                _write(registry, sources, event, other)
            except VersionGoneError as error:
                logger.warning("%s", error)
        sources.records.versions.note_write(event.audit_id, record.event.outcome.value, version)
    return version


def _lock(event: DecisionEvent) -> str:
    return f"registry {registered_name(event.model_id)}"


def _version_of(registry: ModelRegistry, sources: Sources, event: DecisionEvent) -> str:
    """The version that a trigger asked for the audit of; else the one with the audited weights."""
    kind = kind_of(registry)
    if kind is not None:
        asked = sources.records.versions.asked_version(event.audit_id, kind)
        if asked is not None:
            return asked
    return sources.records.registration(event.audit_id) or registry.ensure_version(event.model_id, event.model_digest)


def _others(registry: ModelRegistry, sources: Sources, event: DecisionEvent) -> frozenset[str]:
    name = VersionName(None, event.model_id, "")
    return sources.records.versions.on_record(name, event.model_id, event.model_digest).registrations


def _write(registry: ModelRegistry, sources: Sources, event: DecisionEvent, version: str) -> VersionRecord:
    record = standing_record(sources, event, _named(registry, event, version))
    if isinstance(registry, EvidenceRegistry):
        registry.write_version(record, version)
    else:
        registry.write_decision(record.event, version)
    return record


def _named(registry: ModelRegistry, event: DecisionEvent, version: str) -> VersionName:
    kind = kind_of(registry)
    # Of the Hub a trigger's name of a model is the model's id.
    name = event.model_id if kind is RegistryKind.HUGGINGFACE else registered_name(event.model_id)
    return VersionName(kind, name, version)
