"""A dashboard with something on every page: audits that run, failed and were decided, sign-offs, and who may log in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.router.inputs import AuditInputs
from proctor.router.ledger.store import PlannedShard
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.standings import NewSignOff
from proctor.runtime.signing import open_signing_key
from proctor.scorer.report.document import Report
from tests.decided_audits import put_decided, report_with
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import serving_both

REVIEWER = new_token()
TOKENS = {"anna": {"token": REVIEWER, "role": "reviewer", "sees_all": True}}


class Stage(NamedTuple):
    """Where the dashboard is, and which audits it has."""

    bench: AuditBench
    url: str
    running: str
    failed: str
    blocked: str
    in_review: str
    approved: str
    signed: str

    @property
    def pages(self) -> dict[str, str]:
        """The path of each page by a name."""
        return {
            "audits": "/audits",
            "audit": f"/audits/{self.blocked}",
            "progress": f"/audits/{self.running}",
            "failed": f"/audits/{self.failed}",
            "signed": f"/audits/{self.signed}",
            "review": "/review",
            "sign": f"/audits/{self.in_review}/review",
            "record": "/record",
            "trends": "/trends",
            "benchmarks": "/benchmarks",
            "costs": "/costs",
            "problem": "/audits/none",
        }


@contextmanager
def stage(home: Path, valkey_url: str) -> Iterator[Stage]:
    """The dashboard, served for as long as the block lasts."""
    with audit_bench(home, valkey_url) as bench:
        running = _submitted(bench, "capitals-nightly", "acme/assistant-8b-chat")
        bench.set(running, AuditState.ANSWERING, variants="sha256:variants")
        _plan(bench, running)
        failed = _submitted(bench, "gsm8k-short", "acme/assistant-1b")
        bench.set(failed, AuditState.FAILED, "the endpoint http://127.0.0.1:8000/v1 has not answered for 30 minutes")
        key = open_signing_key(home, None)
        inputs = AuditInputs.model_validate(bench.records.audit(failed).inputs)

        def put(outcome: DecisionOutcome, subject: str) -> str:
            return put_decided(bench.desk, inputs, report_with(outcome), subject=subject, key=key)

        approved, in_review = put(DecisionOutcome.APPROVE, "3f1c"), put(DecisionOutcome.REVIEW, "9a0e")
        signed, blocked = put(DecisionOutcome.BLOCK, "c77d"), put(DecisionOutcome.BLOCK, "51b2")
        wanted = NewSignOff(
            Verb.OVERRIDE,
            DecisionOutcome.APPROVE,
            SignedBy(name="anna", via="token"),
            "The leaked items were taken out of the benchmark; the remaining ones were audited by hand.",
            "MODEL-1412",
            expires_after_days=90,
        )
        bench.records.standings.sign(signed, wanted, key=key)
        with serving_both(bench.desk, tokens=TOKENS) as (_, url):
            yield Stage(bench, url, running, failed, blocked, in_review, approved, signed)


def served_report(stage: Stage, report: Report) -> str:
    """Put one more audit with this report on the stage; its id."""
    inputs = AuditInputs.model_validate(stage.bench.records.audit(stage.failed).inputs)
    return put_decided(stage.bench.desk, inputs, report, subject="further")


def _submitted(bench: AuditBench, name: str, model: str) -> str:
    said = json.loads(bench.suite_text(name))
    said["model_config"]["model_id"] = model
    path = bench.home / f"{name}.json"
    path.write_text(json.dumps(said))
    return bench.desk.submit(path).audit.audit_id


def _plan(bench: AuditBench, audit: str) -> None:
    shards = [PlannedShard(f"s{n}", 32, f"sha256:{n}", n) for n in range(40)]
    bench.ledger.plan(audit, "answer", shards, total_trials=None)
    bench.answer(audit, *(f"s{n}" for n in range(17)))
    bench.give_up(audit, "s17", "the endpoint answered 503 for the third time")
