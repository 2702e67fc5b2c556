"""The scorer's tasks: grades while answers come in, and one decision at the end, on stores as services have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import StoreError
from proctor.domain.manifest import AnsweredShard, AuditManifest, GradeSet, ItemSet, VariantSet
from proctor.domain.messages import AuditScored, GradeShards, Message, ScoreAudit, ShardsGraded
from proctor.domain.record.attestation import ATTESTATION, entry_envelope
from proctor.domain.record.finding import Code
from proctor.domain.trial import Outcome
from proctor.runtime.artifacts.chunks import put_items, put_variants
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.messaging import tasks as runtime_tasks
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import AUDIT_MEASURES, DECISIONS
from proctor.runtime.redis.tries import Tries
from proctor.runtime.settings import Settings
from proctor.runtime.signing import known_keys
from proctor.scorer import tasks
from proctor.scorer.grading import loading
from proctor.scorer.grading.ahead import RecentGrades
from proctor.scorer.grading.targets import TargetsCache
from proctor.studies.measuring import TakenIn, take_in
from proctor.studies.record.checks import Checked, check_store, trust_in
from tests.record_samples import by_hand
from tests.report_samples import SampleAudit, blocked
from tests.scored_audits import StoredAudit, cut_into_shards


class Scorer:
    """The scorer's tasks on stores of their own; what they send is kept."""

    def __init__(self, folder: Path, sample: SampleAudit) -> None:
        self.folder, self.sample = folder, sample
        self.settings = Settings(home=folder)
        self.records = Records(self.settings.records_url)
        self.artifacts = LocalArtifacts(Path(self.settings.artifacts))
        self.sent: list[Message] = []
        stored = StoredAudit.of(sample.manifest, sample.items, cut_into_shards(sample.asked))
        for data in stored.store.objects.values():
            self.artifacts.put(data)
        items = put_items(self.artifacts, ItemSet(items=tuple(sample.items)))
        made = VariantSet(variants=tuple(sample.variants), rejections=tuple(sample.rejections), encoder="e")
        variants = put_variants(self.artifacts, items, made)
        self.manifest = stored.manifest.model_copy(update={"items": items, "variants": variants})

    def audit(self) -> str:
        """The id of another audit on record."""
        return self.records.create_audit("subject", self.sample.suite.model_dump_json(by_alias=True), {}).audit_id

    def grade(self, shards: tuple[AnsweredShard, ...], extractor: str = "auto") -> tuple[AnsweredShard, ...]:
        """Have shards graded as they come in; what the scorer says of them, nothing where it says nothing."""
        self.sent.clear()
        tasks.grade_shards(GradeShards(audit_id="a", items=self.manifest.items, extractor=extractor, shards=shards))
        return tuple(one for message in self.sent if isinstance(message, ShardsGraded) for one in message.graded)

    def score(self, audit_id: str, manifest: AuditManifest) -> str | None:
        """Have an audit scored; the error that the scorer answers with."""
        self.sent.clear()
        message = ScoreAudit(audit_id=audit_id, manifest=put_model(self.artifacts, manifest))
        runtime_tasks.app.tasks[message.task](message=message.plain())
        (answer,) = self.sent
        assert isinstance(answer, AuditScored)
        assert answer.audit_id == audit_id
        return answer.error

    def report(self, audit_id: str) -> bytes:
        """The report of a decided audit."""
        return (self.folder / "reports" / audit_id / "report.json").read_bytes()


@pytest.fixture
def scorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, valkey_url: str) -> Iterator[Scorer]:
    made = Scorer(tmp_path, blocked(n_items=60, leaked=0.3, knows=0.5))
    monkeypatch.setattr(tasks, "worker_artifacts", lambda: made.artifacts)
    monkeypatch.setattr(runtime_tasks, "_STORE_WAITS_S", (0.0, 0.0, 0.0))
    monkeypatch.setattr(runtime_tasks, "worker_tries", lambda: Tries(f"{valkey_url}/13"))
    monkeypatch.setattr(tasks, "worker_records", lambda: made.records)
    monkeypatch.setattr(tasks, "worker_settings", lambda: made.settings)
    monkeypatch.setattr(tasks, "send", made.sent.append)
    monkeypatch.setattr(tasks, "_targets", TargetsCache())
    monkeypatch.setattr(tasks, "_recent", RecentGrades())
    with closing(made.records):
        yield made


def test_shards_that_come_in_are_answered_with_where_their_grades_are(scorer: Scorer) -> None:
    shards = scorer.manifest.answered
    graded = scorer.grade(shards[:3])
    assert [one.model_copy(update={"grades": None}) for one in graded] == list(shards[:3])
    for one in graded:
        assert one.grades is not None
        grades = get_model(scorer.artifacts, one.grades, GradeSet)
        assert (grades.shard, grades.completions, grades.extractor) == (one.shard, one.completions, "choice_letter")
        assert set(grades.outcomes) <= set(Outcome)
    assert scorer.grade(shards[:3]) == graded


def test_a_shard_that_cannot_be_graded_is_left_out_of_the_answer(
    scorer: Scorer, caplog: pytest.LogCaptureFixture
) -> None:
    good = scorer.manifest.answered[0]
    broken = good.model_copy(update={"completions": "sha256:" + "0" * 64})
    assert [one.shard for one in scorer.grade((broken, good))] == [good.shard]
    assert scorer.grade((broken,)) == ()
    assert scorer.sent == []
    assert good.shard in caplog.text


def test_shards_of_items_that_are_none_are_not_graded(scorer: Scorer, caplog: pytest.LogCaptureFixture) -> None:
    scorer.manifest = scorer.manifest.model_copy(update={"items": scorer.artifacts.put(b'{"no": "index"}')})
    assert scorer.grade(scorer.manifest.answered) == ()
    assert "nothing is graded before its end" in caplog.text


def test_items_that_the_extractor_cannot_read_are_not_graded_and_end_the_audit_with_the_reason(
    scorer: Scorer, caplog: pytest.LogCaptureFixture
) -> None:
    assert scorer.grade(scorer.manifest.answered, "numeric") == ()
    assert "is not a number" in caplog.text
    metric = scorer.sample.suite.metric.model_copy(update={"extractor": "numeric"})
    suite = scorer.sample.suite.model_copy(update={"metric": metric})
    error = scorer.score(scorer.audit(), scorer.manifest.model_copy(update={"suite": suite}))
    assert error is not None
    assert "is not a number" in error


def test_the_report_is_the_same_whether_all_some_or_none_was_graded_before_the_end(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded = scorer.grade(scorer.manifest.answered)
    half = len(graded) // 2
    ways = (graded, graded[:half] + scorer.manifest.answered[half:], scorer.manifest.answered)
    reports = set()
    for answered in ways:
        monkeypatch.setattr(tasks, "_recent", RecentGrades())
        audit_id = scorer.audit()
        assert scorer.score(audit_id, scorer.manifest.model_copy(update={"answered": answered})) is None
        reports.add(scorer.report(audit_id))
    assert len(reports) == 1


@pytest.mark.parametrize("told", [True, False], ids=["the router knows", "the router has not heard yet"])
def test_what_was_graded_before_the_end_is_not_graded_again(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    graded = scorer.grade(scorer.manifest.answered)
    if told:
        monkeypatch.setattr(tasks, "_recent", RecentGrades())
    again: list[AnsweredShard] = []
    monkeypatch.setattr(loading, "grade_answered", lambda store, answered, targets: again.append(answered))
    manifest = scorer.manifest.model_copy(update={"answered": graded}) if told else scorer.manifest
    assert scorer.score(scorer.audit(), manifest) is None
    assert again == []


def test_an_audit_that_is_scored_twice_has_one_decision(scorer: Scorer) -> None:
    audit_id = scorer.audit()
    assert scorer.score(audit_id, scorer.manifest) is None
    first = scorer.records.decision(audit_id)
    assert first is not None
    assert first["reportDigest"] == bytes_digest(scorer.report(audit_id))
    assert first["reportDigest"] in (scorer.folder / "reports" / audit_id / "report.html").read_text("utf-8")
    assert scorer.score(audit_id, scorer.manifest.model_copy(update={"answered": ()})) is None
    assert scorer.records.decision(audit_id) == first


def _checked(scorer: Scorer) -> Checked:
    keys = known_keys(scorer.folder, scorer.settings.signing_key)
    return check_store(scorer.records, scorer.artifacts, scorer.folder, trust_in(keys))


def test_a_decision_is_logged_signed_and_attested_beside_its_report(scorer: Scorer) -> None:
    audits = [scorer.audit() for _ in range(2)]
    for audit_id in audits:
        assert scorer.score(audit_id, scorer.manifest) is None
    checked = _checked(scorer)
    assert checked.findings == ()
    assert (checked.entries, checked.signed, checked.reports, checked.witnesses) == (2, 2, 2, 2)
    (logged,) = scorer.records.logged(audits[0])
    entry = json.loads(logged.text)
    folder = scorer.folder / "reports" / audits[0]
    laid = {path.name: bytes_digest(path.read_bytes()) for path in folder.iterdir() if path.name != ATTESTATION}
    assert entry["content"]["files"] == laid
    assert {"report.json", "report.html"} <= laid.keys()
    assert entry["content"]["event"] == scorer.records.decision(audits[0])
    assert json.loads((folder / ATTESTATION).read_bytes()) == entry_envelope(entry, logged.signature)


def test_when_an_approval_ends_travels_with_the_decision(scorer: Scorer) -> None:
    terms = {"approval_expires_after_days": 90, "approval_ends_when_superseded": True}
    suite = scorer.manifest.suite
    changed = suite.model_copy(update={"governance": suite.governance.model_copy(update=terms)})
    audit_id = scorer.audit()
    assert scorer.score(audit_id, scorer.manifest.model_copy(update={"suite": changed})) is None
    (logged,) = scorer.records.logged(audit_id)
    approval = json.loads(logged.text)["content"]["approval"]
    assert approval == {"expires_after_days": 90, "ends_when_superseded": True}
    standing = scorer.records.standings.standing_of(audit_id)
    assert standing is not None
    # A block does not end.
    assert (standing.outcome, standing.expires_at, standing.ends_when_superseded) == ("block", None, True)


def test_an_attestation_that_whoever_decided_did_not_live_to_write_is_written_the_next_time(scorer: Scorer) -> None:
    audit_id = scorer.audit()
    assert scorer.score(audit_id, scorer.manifest) is None
    path = scorer.folder / "reports" / audit_id / ATTESTATION
    first = path.read_bytes()
    path.unlink()
    assert scorer.score(audit_id, scorer.manifest) is None
    assert path.read_bytes() == first
    # One that is there bears witness to what was written first, and is not written again.
    path.write_bytes(b"{}")
    assert scorer.score(audit_id, scorer.manifest) is None
    assert path.read_bytes() == b"{}"


def test_a_home_in_which_no_key_can_be_made_delays_no_decision(
    scorer: Scorer, caplog: pytest.LogCaptureFixture
) -> None:
    (scorer.folder / "record").write_bytes(b"a file where the folder of keys should be")
    audit_id = scorer.audit()
    assert scorer.score(audit_id, scorer.manifest) is None
    assert scorer.records.decision(audit_id) is not None
    assert "is not signed" in caplog.text
    assert {finding.code for finding in _checked(scorer).findings} == {Code.UNSIGNED, Code.UNSIGNED_END}
    (scorer.folder / "record").unlink()
    assert scorer.score(scorer.audit(), scorer.manifest) is None
    assert _checked(scorer).intact


def test_a_shard_that_is_gone_ends_the_audit_with_its_name(scorer: Scorer) -> None:
    gone = AnsweredShard(shard="sha256:" + "0" * 64, completions="sha256:" + "1" * 64)
    manifest = scorer.manifest.model_copy(update={"answered": (*scorer.manifest.answered, gone)})
    error = scorer.score(scorer.audit(), manifest)
    assert error is not None
    assert gone.shard in error


def test_trials_that_are_graded_early_are_counted_and_those_that_cannot_be_are_not(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = list[int]()
    monkeypatch.setattr("proctor.runtime.metrics.recording.trials_graded_ahead", counted.append)
    damaged = AnsweredShard(shard=bytes_digest(b"nowhere"), completions=bytes_digest(b"nowhere"))
    graded = scorer.grade((*scorer.manifest.answered, damaged))
    sizes = [len(get_model(scorer.artifacts, str(one.grades), GradeSet).trial_ids) for one in graded]
    assert sorted(counted) == sorted(sizes)
    assert sum(counted) > 0


class AwayFor:
    """A store that cannot be read for so many times."""

    def __init__(self, artifacts: LocalArtifacts, times: int) -> None:
        self._artifacts, self.times = artifacts, times

    def get(self, digest: str) -> bytes:
        if self.times > 0:
            self.times -= 1
            raise StoreError("the store is away")
        return self._artifacts.get(digest)

    def put(self, data: bytes) -> str:
        return self._artifacts.put(data)


@pytest.mark.parametrize("times", [1, 3])
def test_a_store_that_fails_for_a_moment_does_not_fail_the_scoring(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    away = AwayFor(scorer.artifacts, times)
    monkeypatch.setattr(tasks, "worker_artifacts", lambda: away)
    assert scorer.score(scorer.audit(), scorer.manifest) is None
    assert away.times == 0


def test_a_record_store_that_fails_for_a_moment_does_not_either(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([OperationalError("SELECT", {}, OSError("the server closed the connection"))])

    def decision(audit_id: str) -> object:
        for moment in moments:
            raise moment
        return known(audit_id)

    known = scorer.records.decision
    monkeypatch.setattr(scorer.records, "decision", decision)
    assert scorer.score(scorer.audit(), scorer.manifest) is None


def test_a_store_that_stays_away_fails_the_scoring_with_its_words(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "worker_artifacts", lambda: AwayFor(scorer.artifacts, 100))
    assert scorer.score(scorer.audit(), scorer.manifest) == "scoring failed: the store is away"


def test_the_figures_of_an_audit_are_on_record_with_its_decision_and_its_report_gives_the_same(scorer: Scorer) -> None:
    audit_id = scorer.audit()
    assert scorer.score(audit_id, scorer.manifest) is None
    (kept,) = scorer.records.measures.of_audits([audit_id]).values()
    items = scorer.records.measures.items([audit_id])[audit_id]
    report = json.loads(scorer.report(audit_id))
    evidence = report["evidence"]["perturbation"]
    assert kept.measure.score.value == evidence["contamination_score"]["value"]
    assert kept.measure.protocol_digest == report["protocol_digest"]
    found = {one["item_id"]: one for one in evidence["items"]}
    assert list(items.item_ids) == sorted(found)
    for item_id, right, total in zip(items.item_ids, items.right, items.total, strict=True):
        assert (right, total) == (found[item_id]["perturbed_correct"], found[item_id]["perturbed_total"])
    # As if it had been decided before figures were kept.
    with by_hand(scorer.settings.records_url) as connection:
        connection.execute(AUDIT_MEASURES.delete())
    assert take_in(scorer.records, scorer.artifacts, limit=10) == TakenIn(1, 0, (), False)
    assert scorer.records.measures.of_audits([audit_id])[audit_id].measure == kept.measure
    assert take_in(scorer.records, scorer.artifacts, limit=10).measured == 0


def test_a_report_that_is_gone_keeps_nothing_else_from_being_taken_in(scorer: Scorer) -> None:
    audit_ids = [scorer.audit() for _ in range(2)]
    for audit_id in audit_ids:
        assert scorer.score(audit_id, scorer.manifest) is None
    lost = json.dumps({**(scorer.records.decision(audit_ids[0]) or {}), "reportDigest": "sha256:" + "0" * 64})
    with by_hand(scorer.settings.records_url) as connection:
        connection.execute(AUDIT_MEASURES.delete())
        connection.execute(DECISIONS.update().where(DECISIONS.c.audit_id == audit_ids[0]).values(event=lost))
    assert take_in(scorer.records, scorer.artifacts, limit=10) == TakenIn(1, 0, (audit_ids[0],), False)
    assert take_in(scorer.records, scorer.artifacts, limit=1).more
