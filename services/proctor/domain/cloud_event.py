"""A decision as a CloudEvent 1.0: the same data, under attributes that tools know which know nothing of Proctor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import canonical_json, json_digest
from proctor.domain.decision import DecisionEvent

#: Of an event in structured mode: attributes and data in one JSON document.
CONTENT_TYPE: Final = "application/cloudevents+json"
#: The specification advises a domain turned round in front of it; this project has none.
DECISION_TYPE: Final = "proctor.decision.v1"
TEST_TYPE: Final = "proctor.test.v1"
#: A name, as that of the suite's schema: the message is defined in protos/proctor/v1/decision.proto.
DECISION_SCHEMA: Final = "urn:proctor:proto:proctor.v1.DecisionEvent"
#: Where an operator has not said where the deployment's pages are.
DEFAULT_SOURCE: Final = "urn:proctor"
#: In front of an attribute's name where it travels as a header, as in CloudEvents' binding to AMQP.
HEADER_PREFIX: Final = "cloudEvents_"
_DATA_TYPE: Final = "application/json"


class CloudEvent(Frozen):
    """An event in structured JSON."""

    specversion: str = "1.0"
    id: str
    """The same however often the event is sent: it and the source say which event it is."""
    source: str
    type: str
    subject: str
    """The audit."""
    time: str | None = Field(default=None, exclude_if=lambda time: time is None)
    """When it was decided, RFC 3339; None where the sender does not know."""
    datacontenttype: str = _DATA_TYPE
    dataschema: str | None = Field(default=None, exclude_if=lambda schema: schema is None)
    data: dict[str, Any]

    def document(self) -> bytes:
        """The event as it is sent in structured mode."""
        return canonical_json(self.plain())

    def headers(self) -> Mapping[str, str]:
        """Its attributes as headers of a message whose body is the data (binary mode).

        The data's content type is the message's own then, and so is no attribute.
        """
        plain = self.plain()
        return {
            f"{HEADER_PREFIX}{name}": value for name, value in plain.items() if name not in ("data", "datacontenttype")
        }


def decision_event(event: DecisionEvent, *, source: str | None, decided_at: str | None = None) -> CloudEvent:
    """A decision as a CloudEvent.

    Its id is made of the decision itself. An audit's id alone would not do: two deployments that audit the same model
    by the same suite give their audits the same ids.

    Args:
        event: the decision, as it is on record.
        source: the address of the deployment's pages, where it has one.
        decided_at: when, ISO 8601 in UTC.
    """
    data = event.plain()
    return CloudEvent(
        id=f"{event.audit_id}-{json_digest(data).removeprefix('sha256:')[:24]}",
        source=source or DEFAULT_SOURCE,
        type=DECISION_TYPE,
        subject=event.audit_id,
        time=decided_at,
        dataschema=DECISION_SCHEMA,
        data=data,
    )


def event_of_a_test(*, source: str | None, at: str) -> CloudEvent:
    """What a sink is sent to see whether it takes events.

    Args:
        source: the address of the deployment's pages, where it has one.
        at: the time, ISO 8601 in UTC.
    """
    data = {"text": "A test. Nothing was decided.", "at": at}
    return CloudEvent(
        id=f"test-{json_digest(data).removeprefix('sha256:')[:24]}",
        source=source or DEFAULT_SOURCE,
        type=TEST_TYPE,
        subject="test",
        time=at,
        data=data,
    )
