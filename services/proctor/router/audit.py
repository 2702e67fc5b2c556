"""What the router knows of one audit beside its state, and how an audit is put on record."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, ValidationError
from sqlalchemy.exc import IntegrityError

from proctor import __version__
from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest, short_id
from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.hub import NO_HUB, HubAccess
from proctor.domain.manifest import ItemSet
from proctor.domain.messages import Priority
from proctor.domain.submitter import LOCAL, LOCAL_NAME, Submitter
from proctor.domain.suite import Suite
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE, Decoding
from proctor.domain.versions import reading
from proctor.formats.gate_calibration import parse_gate_calibration
from proctor.formats.items import load_items, select_items
from proctor.formats.named_file import read_named_file
from proctor.formats.suites import calibration_path, content_digests
from proctor.router.budget import Terms, terms_of
from proctor.router.submit.allowed import hold_private
from proctor.router.submit.endpoints import asked_endpoints, resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.router.submit.privacy import private_by_content
from proctor.router.submit.prompt_sizes import check_sizes
from proctor.router.transmission import check_options
from proctor.runtime.artifacts.chunks import put_items
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.records.store import AuditRecord, AuditState, Records
from proctor.runtime.settings import Settings

#: What comes from outside while an audit runs, from whoever submits or steers it, and not from its own steps.
_STEERED = frozenset({"endpoint", "paraphraser", "router", "priority", "paused", "terms", "submitter"})
#: What two routers may note at the same time, and neither stands in the other's way.
_NOTED = frozenset({"planned_stage"})


class RewritingRound(Frozen):
    """A round of questions to the model that rewords, while it is under way."""

    number: int
    prompts: str
    """Digest of the PromptSet that is asked."""
    decoding: Decoding

    @property
    def stage(self) -> str:
        """The ledger's name of it."""
        return f"{PARAPHRASE_STAGE}-{self.number}"


class AuditInputs(Frozen):
    """Everything by reference that an audit is made of, and what is known of it once it runs.

    The second part says where the audit goes on when it is started again: with its variants it asks the routers, if
    there are any whose messages are not there, else it answers; in a round it asks the model that rewords, and
    otherwise it rewords.
    """

    items: str
    """Digest of the ItemIndex."""
    perturbation: str
    rewordings: str | None
    contents: ContentDigests
    endpoint: EndpointSpec
    paraphraser: EndpointSpec | None = None
    """The endpoint of the model that rewords; None where no strategy asks one."""
    router: EndpointSpec | None = None
    """The endpoint of the routers; None where the suite asks none."""
    calibration: str | None = None

    model_digest: str | None = None
    model_digest_verified: bool = False
    server: str = ""
    rounds: int = 0
    """Rounds that were begun with the model that rewords."""
    rewriting: RewritingRound | None = None
    """The round that is under way."""
    rewrites: str | None = None
    """Digest of the RewriteSet of the rounds that have ended."""
    variants: str | None = None
    """Digest of the VariantIndex. It stays what it is from then on, whatever becomes of the variant library."""
    transmissions: int = 1
    """Times that the routers were begun to be asked; one in which none of them answered is asked again as another."""
    transmitted: str | None = None
    """Digest of the RewriteSet of what the routers wrote."""
    planned_stage: str | None = None
    """The stage that the ledger has a plan of, or had: noted before any of it is handed out. A ledger without that plan
    lost it."""
    manifest: str | None = None
    """Digest of the AuditManifest that is to be scored."""
    priority: Priority = Priority.NORMAL
    """Which audits' shards go first where several ask the same endpoint."""
    paused: bool = False
    """Whether nothing more is handed out; what was handed out before is recorded when it is answered."""
    terms: Terms = Terms()
    """What it may use, as whoever started it last said, and what its tokens cost."""
    submitter: str = Field(default=LOCAL_NAME, exclude_if=lambda name: name == LOCAL_NAME)
    """Who started it last. Not written for the machine's own terminal, as in rows of before there were names."""

    @property
    def own(self) -> dict[str, Any]:
        """What the audit's own steps have brought it to: all but what comes from outside while it runs, and notes."""
        return self.model_dump(exclude=set(_STEERED | _NOTED))

    @property
    def awaits_routers(self) -> bool:
        """Whether routers are asked before the model under audit answers, and have not written yet."""
        return self.router is not None and self.transmitted is None

    @property
    def transmission_stage(self) -> str:
        """The ledger's name of the stage in which the routers are asked."""
        return f"{TRANSMIT_STAGE}-{self.transmissions}"

    @property
    def ledger_stage(self) -> str | None:
        """The ledger's stage that this audit is in, or would go on with; None while it has none."""
        if self.variants is not None:
            return self.transmission_stage if self.awaits_routers else ANSWER_STAGE
        return self.rewriting.stage if self.rewriting is not None else None


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
    return AuditView(record, suite, inputs_of(record))


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


class AuditData(NamedTuple):
    """A suite with the content of the files that it names."""

    suite: Suite
    items: ItemSet
    rewordings: bytes | None
    calibration: bytes | None
    contents: ContentDigests
    notes: tuple[str, ...]
    """What a person should know of the data, e.g. that the file holds fewer items than the sample asks for."""


def gather(
    suite: Suite, base: Path, bundle: Path, benchmarks: Path | None = None, *, hub: HubAccess = NO_HUB
) -> AuditData:
    """Read the files that a suite names.

    Args:
        suite: the suite.
        base: the folder that its relative paths start from.
        bundle: the reference bundle, for the benchmark that Proctor ships.
        benchmarks: the operator's folder of benchmarks, for suites that name no file.
        hub: what the operator lets suites have of the hub; by default nothing.

    Raises:
        BadInputError: when one cannot be read or used, the suite's protocol cannot ask its items, or its prompts would
            be too large.
    """
    loaded = load_items(suite.dataset, base, bundle, benchmarks, hub=hub)
    rewordings = _named_file("rewordings_path", suite.perturbation.rewordings_path, base)
    calibration = _named_file("calibration_path", calibration_path(suite), base)
    if calibration is not None:
        parse_gate_calibration(calibration, str(base / str(calibration_path(suite))))
    items = select_items(loaded.items, suite.dataset)
    if suite.protocol.asks_routers:
        check_options(items)
    check_sizes(items, suite)
    return AuditData(
        suite=suite,
        items=ItemSet(items=items),
        rewordings=rewordings,
        calibration=calibration,
        contents=content_digests(suite, base, bundle, benchmarks),
        notes=tuple(loaded.notes(suite.dataset)),
    )


def _named_file(field: str, name: str | None, base: Path) -> bytes | None:
    return None if name is None else read_named_file(base / name, f"perturbation_config.{field}")


def hold_content_private(data: AuditData, settings: Settings) -> None:
    """Refuse to send items that the operator marks as private, whatever they are called, where they may not go.

    Raises:
        BadInputError: when an endpoint of the suite is not approved for such.
    """
    why = private_by_content(data.contents.dataset, data.items.items, settings)
    for field, found in asked_endpoints(data.suite, settings).items():
        hold_private(why, found, field)


def subject_of(data: AuditData, submitter: Submitter) -> str:
    """The subject that `submit` would put a suite on record under. Nothing is stored."""
    card = protocol_card(data.suite, data.contents, evaluator_version=evaluator_version())
    return _subject(card.fingerprint, put_items(_Unstored(), data.items), submitter)


def unended(records: Records, subject: str) -> AuditRecord | None:
    """The audit of a subject with which a submission would go on; None where it would be a new one."""
    latest = records.latest_audit(subject)
    return None if latest is None or latest.state.final else latest


def _subject(fingerprint: str, items: str, submitter: Submitter) -> str:
    return short_id([fingerprint, items, *([] if submitter.shares else [submitter.name])])


class _Unstored:
    """Stands for an artifact store where digests alone are asked for."""

    def put(self, data: bytes) -> str:
        return bytes_digest(data)

    def get(self, digest: str) -> bytes:
        raise KeyError(digest)


class Submission(NamedTuple):
    """An audit on record."""

    record: AuditRecord
    """As it was found, or as it was created."""
    resumed: bool
    """Whether it goes on with one that did not end."""


def _anyone(found: AuditRecord | None) -> AbstractContextManager[None]:
    del found
    return nullcontext()


def submit(
    data: AuditData,
    settings: Settings,
    records: Records,
    artifacts: ArtifactStore,
    *,
    priority: Priority = Priority.NORMAL,
    at_terminal: bool = False,
    submitter: Submitter = LOCAL,
    admit: Callable[[AuditRecord | None], AbstractContextManager[None]] = _anyone,
) -> Submission:
    """Put an audit on record, or find the unfinished one of the same subject.

    The subject is the fingerprint of the suite (model and version included) with the content of its files, so the
    same suite started again goes on with the audit that was interrupted, paused or not. A submitter with a name has
    subjects of their own.

    Args:
        data: the suite with its data.
        settings: the operator's.
        records: where the audit is put on record.
        artifacts: where its items are stored.
        priority: whose prompts go first where audits share an endpoint.
        submitter: who submits it.
        admit: entered around the moment at which the audit begins, or begins again, with what was found on record.
            What it raises leaves the records as they were.
        at_terminal: see `resolve_endpoint`.

    Raises:
        BadInputError: when an endpoint of the suite may not be asked here or not be sent its items, a strategy asks a
            model and the suite names none, or the cost is limited and an endpoint has no prices; nothing is on record
            then.
        NewerVersionError: when its last audit did not end and needs a newer Proctor.
        StoreError: when the record store went away meanwhile.
    """
    suite = data.suite
    terms = terms_of(suite, settings, submitter.name)
    hold_content_private(data, settings)
    steered: dict[str, Any] = {
        "endpoint": resolve_endpoint(suite, settings, at_terminal=at_terminal),
        "paraphraser": resolve_paraphraser(suite, settings, at_terminal=at_terminal),
        "router": resolve_router(suite, settings, at_terminal=at_terminal),
        "priority": priority,
        "paused": False,
        "terms": terms,
        "submitter": submitter.name,
    }
    card = protocol_card(suite, data.contents, evaluator_version=evaluator_version())
    items = put_items(artifacts, data.items)
    subject = _subject(card.fingerprint, items, submitter)
    inputs = AuditInputs(
        items=items,
        perturbation=put_model(artifacts, suite.perturbation),
        rewordings=artifacts.put(data.rewordings) if data.rewordings is not None else None,
        calibration=artifacts.put(data.calibration) if data.calibration is not None else None,
        contents=data.contents,
        **steered,
    )
    while True:
        latest = unended(records, subject)
        if latest is None:
            with suppress(IntegrityError), admit(None):
                created = records.create_audit(subject, suite.model_dump_json(by_alias=True), inputs.plain())
                return Submission(created, False)
            # Another put the same suite on record at the same moment: now there is one to go on with.
            continue
        # The stack may have come back on other ports: the endpoints are where they are now.
        earlier = inputs_of(latest)
        with admit(latest):
            advanced = records.advance(
                latest.audit_id,
                # Not failed any more from here on: whoever watches it must not take the old end for a new one.
                AuditState.CREATED if latest.state is AuditState.FAILED else latest.state,
                expected=[latest.state],
                expected_inputs=latest.inputs,
                inputs=earlier.model_copy(update=steered).plain(),
            )
        if advanced:
            return Submission(latest, True)
