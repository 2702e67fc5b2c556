"""Model versions and their decisions in MLflow's model registry.

A version is known by the digest of its weights, in the tag `proctor.model_digest`, and not by its number. What stands
of it is a handful of `proctor.*` tags, a part of its description, the evidence among the artifacts of its run, and the
alias `proctor-approved` on its model. At every moment, a crash between two calls included, the alias points at a
version whose tags say `approve`: it is set after the tags and taken away before them. Tags, aliases and words of others
are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.domain.problems import visible
from proctor.domain.registered_version import MODEL_DIGEST_TAG as MODEL_DIGEST_TAG
from proctor.domain.registered_version import MODEL_ID_TAG as MODEL_ID_TAG
from proctor.domain.registered_version import OWN_SOURCE, RegistryKind
from proctor.domain.registered_version import registered_name as registered_name
from proctor.registry.description import described
from proctor.registry.mlflow_client import ModelVersion, RegistryRefusedError, UsesMlflow
from proctor.registry.mlflow_evidence import lay_down
from proctor.registry.model_registry import VersionGoneError
from proctor.registry.promotion import HeldVersion
from proctor.registry.version_record import VersionRecord
from proctor.registry.version_tags import (
    AUDIT_ID_TAG,
    DECISION_TAG,
    ENTRY_TAG,
    FINGERPRINT_TAG,
    NO_SCOPE,
    OLD_REPORT_TAG,
    REPORT_TAG,
    SCOPE_TAG,
    cut_to_tag,
    is_stale,
    version_tags,
)

#: Of the number of an entry of the log; what is longer is none.
_MAX_DIGITS: Final = 18
APPROVED_ALIAS = "proctor-approved"


class RegistryCounts(NamedTuple):
    """How many model versions the registry holds, and how many of them carry a decision."""

    versions: int
    decisions: int
    approved: int
    review: int
    blocked: int


class MlflowRegistry(UsesMlflow):
    """The model registry of one MLflow server. Writing the same thing twice leaves the same state."""

    #: Whose versions these are, where triggers ask for audits of them.
    kind: Final = RegistryKind.MLFLOW

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
        """Write one decision on a model version, as what stands of it; see `write_version`."""
        self.write_version(VersionRecord.of_event(event), version)

    def write_version(self, record: VersionRecord, version: str) -> None:
        """Write what stands of a model version, and read it back.

        First the evidence, then the tags and the description, then the decision, and the alias last; where a version
        is approved no longer, the alias goes first.

        Raises:
            VersionGoneError: the registry has no such version any more.
            RegistryError: when the version has other weights than the decision is of, the registry cannot be reached
                or refuses, or what it holds afterwards is not what was written.
        """
        event = record.event
        name = registered_name(event.model_id)
        present = self._present(event, version)
        if not record.approved and APPROVED_ALIAS in present.aliases:
            self._client.delete_alias(name, APPROVED_ALIAS)
        evidence = lay_down(self._client, present, record)
        tags = {**evidence, **version_tags(record)}
        if SCOPE_TAG in present.tags:
            tags = {SCOPE_TAG: NO_SCOPE} | tags
        decision = {DECISION_TAG: tags.pop(DECISION_TAG)}
        self._set(present, tags)
        for key in present.tags:
            if is_stale(key, tags):
                self._client.delete_tag(name, version, key)
        description = described(present.description, record)
        if description != present.description:
            self._client.describe(name, version, description)
        # The decision comes after its evidence, and the mark that all is written after both.
        self._set(present, decision)
        holds = record.approved and self._is_newest(name, version, record.sequence)
        if holds and APPROVED_ALIAS not in present.aliases:
            self._client.set_alias(name, APPROVED_ALIAS, version)
        self._verify(self._client.version(name, version), tags | decision, description, holds=holds)

    def _present(self, event: DecisionEvent, version: str) -> ModelVersion:
        name = registered_name(event.model_id)
        try:
            present = self._client.version(name, version)
        except RegistryRefusedError as error:
            if error.code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise VersionGoneError(
                f"version {version} of {name} was deleted in MLflow at {self._client.uri}, so the decision of audit "
                f"{event.audit_id} stands on record alone"
            ) from error
        if present.tags.get(MODEL_DIGEST_TAG) != event.model_digest:
            raise RegistryError(
                f"version {version} of {name} has the weights {visible(str(present.tags.get(MODEL_DIGEST_TAG)))}, but "
                f"audit {event.audit_id} is of {event.model_digest}; find the version with ensure_version"
            )
        return present

    def _set(self, present: ModelVersion, tags: Mapping[str, str]) -> None:
        for key, value in tags.items():
            if present.tags.get(key) != value:
                self._client.set_tag(present.name, present.version, key, value)

    def _is_newest(self, name: str, version: str, sequence: int) -> bool:
        """Whether the alias is for this version: it stays on one that was approved later, whoever is written again."""
        try:
            holder = self._client.version_by_alias(name, APPROVED_ALIAS)
        except RegistryRefusedError as error:
            if error.code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                raise
            return True
        if holder.version == version or holder.tags.get(DECISION_TAG) != DecisionOutcome.APPROVE:
            return True
        entry = holder.tags.get(ENTRY_TAG, "")
        # Somebody may have written anything there; what is no number stands in nobody's way.
        if not entry.isdecimal() or len(entry) > _MAX_DIGITS:
            return True
        # The same weights, registered twice, stand by one entry: the alias is for the version registered later.
        return (int(entry), int(holder.version)) < (sequence, int(version))

    def _verify(self, version: ModelVersion, tags: Mapping[str, str], description: str, *, holds: bool) -> None:
        wrong = [key for key, value in tags.items() if version.tags.get(key) != value]
        if (APPROVED_ALIAS in version.aliases) is not holds:
            wrong.append(f"alias {APPROVED_ALIAS}")
        if version.description.strip() != description.strip():
            wrong.append("description")
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
            report_digest=_report_digest(tags),
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


def _report_digest(tags: Mapping[str, str]) -> str | None:
    """The digest of the report as a version's tags have it, those of an earlier Proctor too."""
    new = tags.get(REPORT_TAG)
    return tags.get(OLD_REPORT_TAG) if new is None else f"sha256:{new}"
