"""Model versions and their decisions in MLflow's model registry.

A version is known by the digest of its weights, in the tag `proctor.model_digest`, and not by its number. A decision
is a handful of `proctor.*` tags on the version, and the alias `proctor-approved` on its model. At every moment, a
crash between two calls included, the alias points at a version whose tags say `approve`: it is set after the tags
and taken away before them. Tags and aliases of others are never touched.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple, Self

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.domain.problems import visible
from proctor.registry.mlflow_client import MlflowClient, ModelVersion

APPROVED_ALIAS = "proctor-approved"
DECISION_TAG = "proctor.decision"
MODEL_DIGEST_TAG = "proctor.model_digest"
MODEL_ID_TAG = "proctor.model_id"
AUDIT_ID_TAG = "proctor.audit_id"
#: One such tag for each audit that was written, with its outcome: how an event that comes again late is known.
AUDIT_TAG_PREFIX = "proctor.audit."

#: The size that every MLflow backend guarantees for a tag's value, in bytes of UTF-8.
MAX_TAG_BYTES = 5_000
_CUT_MARK = " … [cut]"


class RegistryCounts(NamedTuple):
    """How many model versions the registry holds, and how many of them carry a decision."""

    versions: int
    decisions: int
    approved: int
    review: int
    blocked: int


def registered_name(model_id: str) -> str:
    """The registered model's name for a model id.

    MLflow refuses '/' in names. A model id never holds '~', so writing '~' for '/' keeps different ids apart;
    the tag `proctor.model_id` is the way back.
    """
    return model_id.replace("/", "~")


def cut_to_tag(text: str, max_bytes: int = MAX_TAG_BYTES) -> str:
    """The text, shortened with a mark where it is longer than a tag's value may be, never inside a character."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= max_bytes:
        return data.decode("utf-8")
    room = max_bytes - len(_CUT_MARK.encode())
    return data[:room].decode("utf-8", errors="ignore") + _CUT_MARK


class MlflowRegistry:
    """The model registry of one MLflow server. Writing the same thing twice leaves the same state."""

    def __init__(self, uri: str) -> None:
        self._client = MlflowClient(uri)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def ensure_version(self, model_id: str, digest: str, *, source: str | None = None, description: str = "") -> str:
        """The number of the model version with these weights; it is created when there is none.

        Args:
            model_id: The model's id; its registered name is `registered_name(model_id)`.
            digest: Full content hash of the weights.
            source: Where the weights are, as a URI (MLflow refuses bare local paths); by default a `proctor:` URI
                that names them by digest.
            description: Text for people, on the version.

        Raises:
            RegistryError: when the digest is not a full one, or the registry cannot be reached or refuses.
        """
        if not FULL_DIGEST.fullmatch(digest):
            raise RegistryError(
                f"{visible(digest[:100])!r} is not a full content hash; a model version is registered under the "
                "'sha256:' and 64 hex digits of its weights"
            )
        name = registered_name(model_id)
        found = self._find(name, digest)
        if found is not None:
            return found
        self._client.create_model(name, tags={MODEL_ID_TAG: model_id}, description="")
        tags = {MODEL_DIGEST_TAG: digest, MODEL_ID_TAG: model_id}
        where = source or f"proctor://{name}/{digest.replace(':', '-')}"
        self._client.create_version(name, source=where, tags=tags, description=cut_to_tag(description))
        # Another writer may have created one at the same moment: all agree on the first.
        created = self._find(name, digest)
        if created is None:
            raise RegistryError(f"MLflow at {self._client.uri} does not return the version of {name} that it created")
        return created

    def _find(self, name: str, digest: str) -> str | None:
        numbers = [
            int(version.version)
            for version in self._client.versions(name)
            if version.tags.get(MODEL_DIGEST_TAG) == digest
        ]
        return str(min(numbers)) if numbers else None

    def write_decision(self, event: DecisionEvent, version: str) -> None:
        """Write a decision on a model version, and read it back.

        An event that comes again after a later audit's decision was written changes nothing.

        Raises:
            RegistryError: when the version has other weights than the event says, the registry cannot be reached or
                refuses, or what it holds afterwards is not what was written.
        """
        name = registered_name(event.model_id)
        present = self._client.version(name, version)
        if present.tags.get(MODEL_DIGEST_TAG) != event.model_digest:
            raise RegistryError(
                f"version {version} of {name} has the weights {visible(str(present.tags.get(MODEL_DIGEST_TAG)))}, but "
                f"audit {event.audit_id} is of {event.model_digest}; find the version with ensure_version"
            )
        written_tag = AUDIT_TAG_PREFIX + event.audit_id
        if written_tag in present.tags and present.tags.get(AUDIT_ID_TAG) != event.audit_id:
            return
        approved = event.outcome is DecisionOutcome.APPROVE
        if not approved and APPROVED_ALIAS in present.aliases:
            self._client.delete_alias(name, APPROVED_ALIAS)
        # The decision comes after its evidence, and the mark that all is written after both.
        tags = {**decision_tags(event), written_tag: event.outcome.value}
        for key, value in tags.items():
            if present.tags.get(key) != value:
                self._client.set_tag(name, version, key, value)
        if approved:
            self._client.set_alias(name, APPROVED_ALIAS, version)
        self._verify(self._client.version(name, version), tags, approved=approved)

    def _verify(self, version: ModelVersion, tags: dict[str, str], *, approved: bool) -> None:
        wrong = [key for key, value in tags.items() if version.tags.get(key) != value]
        if (APPROVED_ALIAS in version.aliases) is not approved:
            wrong.append(f"alias {APPROVED_ALIAS}")
        if wrong:
            raise RegistryError(
                f"MLflow at {self._client.uri} holds something else than was written for version {version.version} of "
                f"{version.name}: {', '.join(wrong)}; is another writer at work?"
            )

    def counts(self) -> RegistryCounts:
        """Count versions and decisions over all models."""
        decisions = [version.tags.get(DECISION_TAG) for version in self._client.versions()]
        return RegistryCounts(
            versions=len(decisions),
            decisions=sum(decision is not None for decision in decisions),
            approved=decisions.count(DecisionOutcome.APPROVE),
            review=decisions.count(DecisionOutcome.REVIEW),
            blocked=decisions.count(DecisionOutcome.BLOCK),
        )


def decision_tags(event: DecisionEvent) -> dict[str, str]:
    """The tags of a decision, in the order in which they are written: evidence first."""
    reasons = "; ".join(f"{reason.code}: {reason.text}" for reason in event.reasons)
    tags = {
        "proctor.fingerprint": event.fingerprint,
        "proctor.protocol_digest": event.protocol_digest,
        "proctor.report_digest": event.report_digest,
        "proctor.report": event.report_path,
        "proctor.audit_suite_id": event.audit_suite_id,
        "proctor.reasons": reasons,
        AUDIT_ID_TAG: event.audit_id,
        DECISION_TAG: event.outcome.value,
    }
    return {key: cut_to_tag(value) for key, value in tags.items()}
