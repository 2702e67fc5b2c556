"""One audit as the router sees it: its row, with its suite and inputs parsed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from proctor.domain.card import ProtocolCard, evaluator_version, protocol_card
from proctor.domain.suite import Suite
from proctor.domain.versions import reading
from proctor.router.inputs import AuditInputs
from proctor.runtime.records.store import AuditRecord, Records


class AuditView(NamedTuple):
    """An audit's record with its suite and inputs parsed."""

    audit_id: str
    record: AuditRecord
    suite: Suite
    inputs: AuditInputs

    def changed(self, **changes: Any) -> AuditView:
        """The audit as it would be with other inputs."""
        return self._replace(inputs=self.inputs.model_copy(update=changes))

    @property
    def card(self) -> ProtocolCard:
        """The protocol card, with the full model digest once the endpoint has been asked."""
        return protocol_card(
            self.resolved_suite,
            self.inputs.contents,
            evaluator_version=evaluator_version(),
            log=self.inputs.log,
            asked=self.inputs.in_force,
        )

    @property
    def resolved_suite(self) -> Suite:
        """The suite with its model version resolved to the full digest where that is known."""
        return with_model_digest(self.suite, self.inputs.model_digest)


def with_model_digest(suite: Suite, digest: str | None) -> Suite:
    """The suite with its model version replaced by the full digest, if there is one."""
    if digest is None:
        return suite
    return suite.model_copy(update={"model": suite.model.model_copy(update={"model_version": digest})})


def view(records: Records, audit_id: str) -> AuditView:
    """Load an audit.

    Raises:
        StoreError: when there is none of that id.
        NewerVersionError: when it needs a newer Proctor.
    """
    return view_of(records.audit(audit_id))


def view_of(record: AuditRecord) -> AuditView:
    """An audit by its record; raises NewerVersionError when it needs a newer Proctor."""
    try:
        suite = _suite(record.suite)
    except ValidationError as error:
        raise reading(f"the suite of audit {record.audit_id}", error) from None
    return AuditView(record.audit_id, record, suite, inputs_of(record))


def inputs_of(record: AuditRecord) -> AuditInputs:
    """What an audit is made of; raises NewerVersionError when it needs a newer Proctor."""
    try:
        return _inputs(record.inputs_json)
    except ValidationError as error:
        raise reading(f"audit {record.audit_id}", error) from None


# Every answer to a shard looks at its audit, and finds the same text nearly always.
@lru_cache(maxsize=64)
def _suite(text: str) -> Suite:
    return Suite.model_validate_json(text)


@lru_cache(maxsize=64)
def _inputs(text: str) -> AuditInputs:
    return AuditInputs.model_validate_json(text)
