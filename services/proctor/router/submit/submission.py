"""Putting an audit on record, or finding the one with which a submission goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from sqlalchemy.exc import IntegrityError

from proctor.domain.action import Action, Verb
from proctor.domain.canonical import bytes_digest, short_id
from proctor.domain.card import evaluator_version, protocol_card
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.log_origin import LOG_BACKEND, LogOrigin
from proctor.domain.looks import LookItems
from proctor.domain.messages import Priority
from proctor.domain.submitter import LOCAL, Submitter
from proctor.domain.suite import Suite
from proctor.router.audit import inputs_of
from proctor.router.inputs import AuditInputs
from proctor.router.looking import looks_of
from proctor.router.states import Cause, before
from proctor.router.submit.asked import asked_at, asked_models
from proctor.router.submit.endpoints import resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.router.submit.gathering import AuditData, hold_content_private, hold_unrun_code
from proctor.router.submit.solvers import resolve_solvers
from proctor.router.submit.terms import terms_of
from proctor.runtime.artifacts.chunks import put_items
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.records.requests import RequestTakenError
from proctor.runtime.records.store import AuditRecord, AuditState, Records
from proctor.runtime.settings import Settings


def subject_of(data: AuditData, settings: Settings, submitter: Submitter) -> str:
    """The subject that `submit` would put a suite on record under. Nothing is stored.

    Raises:
        BadInputError: as `submit` does.
    """
    asked = None if data.log is not None else asked_models(data.suite, settings)
    card = protocol_card(data.suite, data.contents, evaluator_version=evaluator_version(), log=data.log, asked=asked)
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
    request: str | None = None,
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
        request: the request on record whose audit it becomes, which has one and no more.

    Raises:
        RequestTakenError: when the request has another audit already.
        BadInputError: when an endpoint of the suite may not be asked here or not be sent its items, its answers are
            code and none is run here, a strategy asks a model and the suite names none, a solver is the model under
            audit, or the cost is limited and an endpoint has no prices; nothing is on record then.
        NewerVersionError: when its last audit did not end and needs a newer Proctor.
        StoreError: when the record store went away meanwhile.
    """
    suite = data.suite
    terms = terms_of(suite, settings, submitter.name, from_logs=data.log is not None)
    hold_content_private(data, settings)
    hold_unrun_code(data, settings)
    endpoints = _resolved(suite, settings, at_terminal) if data.log is None else _of_logs(suite, data.log)
    solvers = resolve_solvers(suite, endpoints["endpoint"], settings, at_terminal=at_terminal)
    asked = None if data.log is not None else asked_at(**endpoints, solvers=solvers)
    steered: dict[str, Any] = {
        **endpoints,
        "solvers": solvers,
        "in_force": asked,
        "priority": priority,
        "paused": False,
        "terms": terms,
        "submitter": submitter.name,
        # Where the files lie is said by whoever submits; what they hold is on the card.
        "corpora": put_model(artifacts, data.corpora) if data.corpora is not None else None,
    }
    card = protocol_card(suite, data.contents, evaluator_version=evaluator_version(), log=data.log, asked=asked)
    items = put_items(artifacts, data.items)
    subject = _subject(card.fingerprint, items, submitter)
    inputs = AuditInputs(
        items=items,
        perturbation=put_model(artifacts, suite.perturbation),
        rewordings=artifacts.put(data.rewordings) if data.rewordings is not None else None,
        calibration=artifacts.put(data.calibration) if data.calibration is not None else None,
        questions=put_model(artifacts, data.questions) if data.questions is not None else None,
        contents=data.contents,
        log=data.log,
        fresh=put_items(artifacts, data.fresh) if data.fresh is not None else None,
        panel=put_model(artifacts, data.panel) if data.panel is not None else None,
        control=put_items(artifacts, data.control) if data.control is not None else None,
        looks=_looks(data, artifacts),
        **steered,
    )
    detail: dict[str, Any] = {"priority": priority.value} | ({} if request is None else {"request": request})
    while True:
        latest = records.latest_audit(subject)
        if latest is None or latest.state.final:
            # By its number, and not as whichever is next: of two who looked at the same moment one must find it taken.
            ordinal = 1 if latest is None else latest.ordinal + 1
            with suppress(IntegrityError), admit(None):
                written = suite.model_dump_json(by_alias=True)
                action = Action(Verb.SUBMIT, submitter, detail)
                created = records.create_audit(
                    subject, written, inputs.plain(), ordinal=ordinal, request=request, action=action
                )
                return Submission(created, False)
            # Another put the same suite on record at the same moment: now there is one to go on with.
            continue
        # The stack may have come back on other ports: the endpoints are where they are now.
        earlier = inputs_of(latest)
        if request is not None and not records.requests.attach(request, latest.audit_id):
            raise RequestTakenError(f"request {request} has its audit already")
        with admit(latest):
            advanced = records.advance(
                latest.audit_id,
                # Not failed any more from here on: whoever watches it must not take the old end for a new one.
                AuditState.CREATED if latest.state in before(Cause.RESUMED, AuditState.CREATED) else latest.state,
                expected=[latest.state],
                expected_inputs=latest.inputs,
                inputs=earlier.model_copy(update=steered).plain(),
                action=Action(Verb.SUBMIT, submitter, {**detail, "goes_on_from": latest.state.value}),
            )
        if advanced:
            return Submission(latest, True)


def _looks(data: AuditData, artifacts: ArtifactStore) -> tuple[LookItems, ...]:
    fresh, control = (None if kind is None else kind.items for kind in (data.fresh, data.control))
    return looks_of(data.suite.scoring.design, data.items.items, fresh, control, artifacts)


def _resolved(suite: Suite, settings: Settings, at_terminal: bool) -> dict[str, Any]:
    """The endpoints of the models that an audit asks."""
    return {
        "endpoint": resolve_endpoint(suite, settings, at_terminal=at_terminal),
        "paraphraser": resolve_paraphraser(suite, settings, at_terminal=at_terminal),
        "router": resolve_router(suite, settings, at_terminal=at_terminal),
    }


def _of_logs(suite: Suite, log: LogOrigin) -> dict[str, Any]:
    """The same where answers are taken from logs: nobody is asked, so the suite's endpoints need not be known here."""
    named = {"served_name": suite.model.name_on_endpoint, "model_version": suite.model.model_version}
    chat = suite.prompt.chat_template == "user"
    return {"endpoint": EndpointSpec(backend=LOG_BACKEND, url=log.url, chat=chat, **named)}
