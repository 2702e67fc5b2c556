"""What the router knows of one audit beside its state, and how an audit is put on record."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.exc import IntegrityError

from proctor import __version__
from proctor.domain.base import Frozen
from proctor.domain.canonical import short_id
from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.manifest import ItemSet
from proctor.domain.messages import Priority
from proctor.domain.suite import Suite
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE, Decoding
from proctor.formats.gate_calibration import parse_gate_calibration
from proctor.formats.items import load_items, select_items
from proctor.formats.suites import calibration_path, content_digests
from proctor.router.budget import Terms, terms_of
from proctor.router.endpoints import resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.router.transmission import check_options
from proctor.runtime.artifacts import ArtifactStore, put_model
from proctor.runtime.chunks import put_items
from proctor.runtime.records import AuditRecord, AuditState, Records
from proctor.runtime.settings import Settings

#: What comes from outside while an audit runs, from whoever submits or steers it, and not from its own steps.
_STEERED = frozenset({"endpoint", "paraphraser", "router", "priority", "paused", "terms"})


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
    manifest: str | None = None
    """Digest of the AuditManifest that is to be scored."""
    priority: Priority = Priority.NORMAL
    """Which audits' shards go first where several ask the same endpoint."""
    paused: bool = False
    """Whether nothing more is handed out; what was handed out before is recorded when it is answered."""
    terms: Terms = Terms()
    """What it may use, as whoever started it last said, and what its tokens cost."""

    @property
    def own(self) -> dict[str, Any]:
        """What the audit's own steps have brought it to: all but what comes from outside while it runs."""
        return self.model_dump(exclude=set(_STEERED))

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
    """Load an audit."""
    record = records.audit(audit_id)
    return AuditView(record, _suite(record.suite), _inputs(record.inputs_json))


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


def gather(suite: Suite, base: Path, bundle: Path, benchmarks: Path | None = None) -> AuditData:
    """Read the files that a suite names.

    Args:
        suite: the suite.
        base: the folder that its relative paths start from.
        bundle: the reference bundle, for the benchmark that Proctor ships.
        benchmarks: the operator's folder of benchmarks, for suites that name no file.

    Raises:
        BadInputError: when one cannot be read or used, or the suite's protocol cannot ask its items.
    """
    loaded = load_items(suite.dataset, base, bundle, benchmarks)
    rewordings = _named_file("rewordings_path", suite.perturbation.rewordings_path, base)
    calibration = _named_file("calibration_path", calibration_path(suite), base)
    if calibration is not None:
        parse_gate_calibration(calibration, str(base / str(calibration_path(suite))))
    items = select_items(loaded.items, suite.dataset)
    if suite.protocol.asks_routers:
        check_options(items)
    return AuditData(
        suite=suite,
        items=ItemSet(items=items),
        rewordings=rewordings,
        calibration=calibration,
        contents=content_digests(suite, base, bundle, benchmarks),
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


def submit(
    data: AuditData,
    settings: Settings,
    records: Records,
    artifacts: ArtifactStore,
    *,
    priority: Priority = Priority.NORMAL,
) -> Submission:
    """Put an audit on record, or find the unfinished one of the same subject.

    The subject is the fingerprint of the suite (model and version included) with the content of its files, so the
    same suite started again goes on with the audit that was interrupted, paused or not.

    Raises:
        BadInputError: when an endpoint of the suite may not be asked here, a strategy asks a model and the suite names
            none, or the suite limits the cost and an endpoint has no prices; nothing is on record then.
    """
    suite = data.suite
    steered: dict[str, Any] = {
        "endpoint": resolve_endpoint(suite, settings),
        "paraphraser": resolve_paraphraser(suite, settings),
        "router": resolve_router(suite, settings),
        "priority": priority,
        "paused": False,
        "terms": terms_of(suite, settings),
    }
    card = protocol_card(suite, data.contents, evaluator_version=evaluator_version())
    items = put_items(artifacts, data.items)
    subject = short_id([card.fingerprint, items])
    inputs = AuditInputs(
        items=items,
        perturbation=put_model(artifacts, suite.perturbation),
        rewordings=artifacts.put(data.rewordings) if data.rewordings is not None else None,
        calibration=artifacts.put(data.calibration) if data.calibration is not None else None,
        contents=data.contents,
        **steered,
    )
    while True:
        latest = records.latest_audit(subject)
        if latest is None or latest.state.final:
            with suppress(IntegrityError):
                created = records.create_audit(subject, suite.model_dump_json(by_alias=True), inputs.plain())
                return Submission(created, False)
            # Another put the same suite on record at the same moment: now there is one to go on with.
            continue
        # The stack may have come back on other ports: the endpoints are where they are now.
        earlier = AuditInputs.model_validate(latest.inputs)
        if records.advance(
            latest.audit_id,
            # Not failed any more from here on: whoever watches it must not take the old end for a new one.
            AuditState.CREATED if latest.state is AuditState.FAILED else latest.state,
            expected=[latest.state],
            expected_inputs=latest.inputs,
            inputs=earlier.model_copy(update=steered).plain(),
        ):
            return Submission(latest, True)
