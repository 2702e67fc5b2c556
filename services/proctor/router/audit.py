"""What the router knows of one audit beside its state, and how an audit is put on record."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from proctor import __version__
from proctor.domain.base import Frozen
from proctor.domain.canonical import short_id
from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.errors import BadInputError
from proctor.domain.manifest import ItemSet
from proctor.domain.messages import EndpointSpec
from proctor.domain.suite import Backend, Suite
from proctor.formats.gate_calibration import parse_gate_calibration
from proctor.formats.items import load_items, select_items
from proctor.formats.suites import calibration_path, content_digests
from proctor.runtime.artifacts import ArtifactStore, put_model
from proctor.runtime.records import AuditRecord, AuditState, Records
from proctor.runtime.settings import Settings

#: URL scheme of an endpoint → how it is spoken to.
_BACKENDS: dict[str, Backend] = {
    "grpc": "triton",
    "grpcs": "triton",
    "http": "openai",
    "https": "openai",
    "in-process": "in_process",
}


class AuditInputs(Frozen):
    """Everything by reference that an audit is made of. The last five are known once it runs."""

    items: str
    perturbation: str
    rewordings: str | None
    contents: ContentDigests
    endpoint: EndpointSpec
    calibration: str | None = None
    model_digest: str | None = None
    model_digest_verified: bool = False
    server: str = ""
    variants: str | None = None


class AuditView(NamedTuple):
    """An audit's record with its suite and inputs parsed."""

    record: AuditRecord
    suite: Suite
    inputs: AuditInputs

    @property
    def audit_id(self) -> str:
        """The audit's id."""
        return self.record.audit_id

    @property
    def card(self) -> ProtocolCard:
        """The protocol card, with the full model digest once the endpoint has been asked."""
        return protocol_card(self.resolved_suite, self.inputs.contents, evaluator_version=evaluator_version())

    @property
    def resolved_suite(self) -> Suite:
        """The suite with its model version resolved to the full digest where that is known."""
        return with_model_digest(self.suite, self.inputs.model_digest)


def evaluator_version() -> str:
    """The evaluator's name and version as they stand on a protocol card."""
    return f"proctor {__version__}"


def with_model_digest(suite: Suite, digest: str | None) -> Suite:
    """The suite with its model version replaced by the full digest, if there is one."""
    if digest is None:
        return suite
    return suite.model_copy(update={"model": suite.model.model_copy(update={"model_version": digest})})


def view(records: Records, audit_id: str) -> AuditView:
    """Load an audit."""
    record = records.audit(audit_id)
    return AuditView(record, Suite.model_validate_json(record.suite), AuditInputs.model_validate(record.inputs))


def resolve_endpoint(suite: Suite, settings: Settings) -> EndpointSpec:
    """Find the endpoint that a suite names.

    Raises:
        BadInputError: for an id that the operator has not named.
    """
    url = suite.model.endpoint
    if "://" not in url:
        if url not in settings.endpoints:
            known = ", ".join(sorted(settings.endpoints)) or "none"
            raise BadInputError(
                f"model_config.endpoint is {url!r}, which is not the id of an endpoint here (known: {known}); "
                "write a URL, or name it in PROCTOR_ENDPOINTS"
            )
        url = settings.endpoints[url]
    backend = suite.model.backend or _BACKENDS[url.partition(":")[0]]
    if backend == "openai" and url.rstrip("/").endswith("/infer"):
        raise BadInputError(
            f"model_config.endpoint is {suite.model.endpoint!r}: endpoints that take POST …/infer are not in this "
            "version; give an OpenAI-compatible URL (…/v1) or a Triton one (grpc://host:8001)"
        )
    return EndpointSpec(
        backend=backend,
        url=url,
        served_name=suite.model.name_on_endpoint,
        model_version=suite.model.model_version,
        chat=suite.prompt.chat_template == "user",
    )


class AuditData(NamedTuple):
    """A suite with the content of the files that it names."""

    suite: Suite
    items: ItemSet
    rewordings: bytes | None
    calibration: bytes | None
    contents: ContentDigests
    notes: tuple[str, ...]
    """What a person should know of the data, e.g. that the file holds fewer items than the sample asks for."""


def gather(suite: Suite, base: Path, bundle: Path) -> AuditData:
    """Read the files that a suite names.

    Args:
        suite: the suite.
        base: the folder that its relative paths start from.
        bundle: the reference bundle, for the benchmark that Proctor ships.

    Raises:
        BadInputError: when one cannot be read or used.
    """
    loaded = load_items(suite.dataset, base, bundle)
    rewordings = _named_file("rewordings_path", suite.perturbation.rewordings_path, base)
    calibration = _named_file("calibration_path", calibration_path(suite), base)
    if calibration is not None:
        parse_gate_calibration(calibration, str(base / str(calibration_path(suite))))
    return AuditData(
        suite=suite,
        items=ItemSet(items=select_items(loaded.items, suite.dataset)),
        rewordings=rewordings,
        calibration=calibration,
        contents=content_digests(suite, base, bundle),
        notes=tuple(loaded.notes(suite.dataset)),
    )


def _named_file(field: str, name: str | None, base: Path) -> bytes | None:
    if name is None:
        return None
    try:
        return (base / name).read_bytes()
    except OSError as error:
        raise BadInputError(f"perturbation_config.{field}: {base / name} cannot be read: {error.strerror}") from None


class Submission(NamedTuple):
    """An audit on record."""

    record: AuditRecord
    """As it was found, or as it was created."""
    resumed: bool
    """Whether it goes on with one that did not end."""


def submit(data: AuditData, settings: Settings, records: Records, artifacts: ArtifactStore) -> Submission:
    """Put an audit on record, or find the unfinished one of the same subject.

    The subject is the fingerprint of the suite (model and version included) with the content of its files, so the
    same suite started again goes on with the audit that was interrupted.

    Raises:
        BadInputError: when the suite's endpoint is not known here; nothing is on record then.
    """
    suite = data.suite
    endpoint = resolve_endpoint(suite, settings)
    card = protocol_card(suite, data.contents, evaluator_version=evaluator_version())
    items = put_model(artifacts, data.items)
    subject = short_id([card.fingerprint, items])
    inputs = AuditInputs(
        items=items,
        perturbation=put_model(artifacts, suite.perturbation),
        rewordings=artifacts.put(data.rewordings) if data.rewordings is not None else None,
        calibration=artifacts.put(data.calibration) if data.calibration is not None else None,
        contents=data.contents,
        endpoint=endpoint,
    )
    latest = records.latest_audit(subject)
    if latest is not None and latest.state is not AuditState.DECIDED:
        # The stack may have come back on other ports: the endpoint is where it is now.
        earlier = AuditInputs.model_validate(latest.inputs)
        records.advance(
            latest.audit_id,
            # Not failed any more from here on: whoever watches it must not take the old end for a new one.
            AuditState.CREATED if latest.state is AuditState.FAILED else latest.state,
            expected=[latest.state],
            inputs=earlier.model_copy(update={"endpoint": endpoint}).plain(),
        )
        return Submission(latest, True)
    return Submission(records.create_audit(subject, suite.model_dump_json(by_alias=True), inputs.plain()), False)
