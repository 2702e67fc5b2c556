"""Model versions and their decisions in MLflow's model registry.

A version is known by the digest of its weights, in the tag `proctor.model_digest`, and not by its number. A decision
is a handful of `proctor.*` tags on the version, and the alias `proctor-approved` on its model. At every moment, a
crash between two calls included, the alias points at a version whose tags say `approve`: it is set after the tags
and taken away before them. Tags and aliases of others are never touched.
"""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.domain.problems import visible
from proctor.domain.registered_version import MODEL_DIGEST_TAG as MODEL_DIGEST_TAG
from proctor.domain.registered_version import MODEL_ID_TAG as MODEL_ID_TAG
from proctor.domain.registered_version import OWN_SOURCE
from proctor.domain.registered_version import registered_name as registered_name
from proctor.registry.mlflow_client import ModelVersion, UsesMlflow
from proctor.registry.promotion import HeldVersion

APPROVED_ALIAS = "proctor-approved"
DECISION_TAG = "proctor.decision"
#: How far the decision's evidence reaches past the wording: `proctor.domain.scope.Scope`.
SCOPE_TAG = "proctor.scope"
#: What the tag says of a decision of before there was a scope, where that of another audit stands there.
_NO_SCOPE = "not recorded"
AUDIT_ID_TAG = "proctor.audit_id"
FINGERPRINT_TAG = "proctor.fingerprint"
REPORT_DIGEST_TAG = "proctor.report_digest"
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


def cut_to_tag(text: str, max_bytes: int = MAX_TAG_BYTES) -> str:
    """The text, shortened with a mark where it is longer than a tag's value may be, never inside a character."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= max_bytes:
        return data.decode("utf-8")
    room = max_bytes - len(_CUT_MARK.encode())
    return data[:room].decode("utf-8", errors="ignore") + _CUT_MARK


class MlflowRegistry(UsesMlflow):
    """The model registry of one MLflow server. Writing the same thing twice leaves the same state."""

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
        where = source or f"{OWN_SOURCE}//{name}/{digest.replace(':', '-')}"
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
        if SCOPE_TAG in present.tags:
            tags = {SCOPE_TAG: _NO_SCOPE} | tags
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

    def held(self, model: str, *, version: str | None = None, alias: str | None = None) -> HeldVersion:
        """What the registry says of a model's version, or of the one that an alias points at.

        Args:
            model: a model id, or the name under which it is registered.
            version: its number; exactly one of this and `alias`.
            alias: its alias.

        Raises:
            RegistryError: when there is no such version, or the registry cannot be reached or refuses.
        """
        name = registered_name(model)
        if alias is not None:
            found = self._client.version_by_alias(name, alias)
        else:
            assert version is not None
            found = self._client.version(name, version)
        tags = found.tags
        return HeldVersion(
            name=found.name,
            version=found.version,
            model_digest=tags.get(MODEL_DIGEST_TAG),
            audit_id=tags.get(AUDIT_ID_TAG),
            outcome=tags.get(DECISION_TAG),
            report_digest=tags.get(REPORT_DIGEST_TAG),
            fingerprint=tags.get(FINGERPRINT_TAG),
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
        # Before all else: no approval is ever readable without it.
        **({} if event.scope is None else {SCOPE_TAG: event.scope.value}),
        FINGERPRINT_TAG: event.fingerprint,
        "proctor.protocol_digest": event.protocol_digest,
        REPORT_DIGEST_TAG: event.report_digest,
        "proctor.report": event.report_path,
        "proctor.audit_suite_id": event.audit_suite_id,
        "proctor.reasons": reasons,
        AUDIT_ID_TAG: event.audit_id,
        DECISION_TAG: event.outcome.value,
    }
    return {key: cut_to_tag(value) for key, value in tags.items()}
