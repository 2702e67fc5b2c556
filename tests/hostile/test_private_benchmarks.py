"""A benchmark that the operator marks as private goes to approved endpoints alone, whatever a suite says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.errors import BadInputError
from proctor.domain.messages import EndpointProbed, RunShards, StartAudit, VariantsBuilt
from proctor.domain.operator_endpoint import OperatorEndpoint, OtherEndpoints
from proctor.domain.private_benchmarks import MAX_PATTERNS, PrivateBenchmarks, parse_private_benchmarks
from proctor.domain.suite import Suite
from proctor.formats.suites import file_digest
from proctor.router import tasks
from proctor.router.barring import Barrier
from proctor.router.dispatch import Dispatcher
from proctor.router.submit.allowed import approved
from proctor.router.submit.endpoints import resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.operator_text import MAX_FILE_BYTES
from proctor.runtime.records.store import AuditState, Records
from proctor.runtime.settings import Settings
from proctor.text.sameness import question_digest
from tests.integration.router_support import PINNED, Bench, router_bench

ENDPOINTS = {
    "open": OperatorEndpoint(url="https://open.example/v1"),
    "approved": OperatorEndpoint(url="https://approved.example/v1", private=True),
    "pool": OperatorEndpoint.model_validate({"replicas": [{"url": "grpc://a.example"}, {"url": "grpc://b.example"}]}),
}
SECRET = [
    {"question": "Which dose of the new compound was given?", "choices": ["1 mg", "2 mg"], "answer": "2 mg"},
    {"question": "Who withdrew from the study?", "choices": ["A", "B"], "answer": "A"},
]


class Office:
    """Where suites are put on record, with the operator's marks."""

    def __init__(self, home: Path, **marks: Any) -> None:
        self.home = home
        home.mkdir(exist_ok=True)
        self.settings = Settings(
            home=home,
            endpoints=ENDPOINTS,
            other_endpoints=OtherEndpoints.ANY,
            private_benchmarks=PrivateBenchmarks(**marks),
        )
        self.records = Records(self.settings.records_url)

    def suite(self, endpoint: str = "open", **sections: Any) -> Suite:
        document = {
            "audit_suite_id": "s",
            "model_config": {"model_id": "m", "model_version": PINNED[:19], "endpoint": endpoint},
            "dataset_config": {"benchmark_name": "harmless", "path": "items.jsonl"},
            "perturbation_config": {"perturbation_strategy": "wordings"},
        }
        return Suite.model_validate(document | sections)

    def put(self, suite: Suite, rows: list[dict[str, Any]], name: str = "items.jsonl") -> str:
        (self.home / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        data = gather(suite, self.home, self.settings.bundle)
        artifacts = LocalArtifacts(Path(self.settings.artifacts))
        return submit(data, self.settings, self.records, artifacts).record.audit_id

    @property
    def is_empty(self) -> bool:
        return self.records.audits() == [] and not Path(self.settings.artifacts).exists()


def marked_items(rows: list[dict[str, Any]]) -> frozenset[str]:
    return frozenset(question_digest(row["question"], row["choices"]) for row in rows)


@pytest.mark.parametrize("name", ["clinical-2026", "CLINICAL-trial", "clinical-"])
def test_a_marked_name_is_private_though_the_suite_says_that_it_is_not(tmp_path: Path, name: str) -> None:
    office = Office(tmp_path, names=("clinical-*",))
    dataset = {"benchmark_name": name, "path": "items.jsonl", "private": False}
    with pytest.raises(BadInputError, match=r'(?i)clinical-.*marks as private, and model_config\.endpoint is "open"'):
        office.put(office.suite(dataset_config=dataset), SECRET)
    assert office.is_empty
    assert office.put(office.suite("approved", dataset_config=dataset), SECRET)


def test_a_marked_dataset_of_the_hub_is_private_under_any_benchmark_name(tmp_path: Path) -> None:
    office = Office(tmp_path, names=("hospital/*",))
    dataset = {"benchmark_name": "harmless", "hub_id": "hospital/trial", "hub_revision": "0" * 40}
    with pytest.raises(BadInputError, match=r"harmless \(hospital/trial\)"):
        resolve_endpoint(office.suite(dataset_config=dataset), office.settings)


def test_a_marked_name_is_kept_from_rewording_models_and_routers_too(tmp_path: Path) -> None:
    office = Office(tmp_path, names=("harmless",))
    paraphraser = {
        "perturbation_strategy": "paraphrase_llm",
        "paraphrase_model": "p",
        "paraphraser": {"endpoint": "https://open.example/v1"},
    }
    with pytest.raises(BadInputError, match=r"perturbation_config\.paraphraser\.endpoint"):
        resolve_paraphraser(office.suite("approved", perturbation_config=paraphraser), office.settings)
    protocol = {"protocol": "router_worker", "router": {"endpoint": "https://open.example/v1"}}
    with pytest.raises(BadInputError, match=r"protocol_config\.router\.endpoint"):
        resolve_router(office.suite("approved", protocol_config=protocol), office.settings)


def test_a_marked_file_is_found_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "original.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SECRET))
    office = Office(tmp_path, datasets=frozenset({str(file_digest(tmp_path / "original.jsonl"))}))
    with pytest.raises(BadInputError, match="a file which the operator of this deployment marks as private"):
        office.put(office.suite(), SECRET)
    assert office.is_empty


PUBLIC = {"question": "What is 2 plus 2?", "choices": ["4", "5"], "answer": "4"}
COPIES = {
    "turned round": SECRET[::-1],
    "one item among others": [PUBLIC, SECRET[1]],
    "options in another order": [{**SECRET[0], "choices": ["2 mg", "1 mg"]}],
    "another right answer": [{**SECRET[0], "answer": "1 mg"}],
    "another case and spacing": [{**SECRET[0], "question": " WHICH dose of\u00a0the new  compound was given?"}],
    "other names of its fields": [{**SECRET[0], "id": "x-1", "source": "elsewhere"}],
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_single_marked_item_makes_a_copy_private_however_it_is_written(tmp_path: Path, copy: str) -> None:
    office = Office(tmp_path, items=marked_items(SECRET))
    with pytest.raises(BadInputError, match="an item which the operator of this deployment marks as private"):
        office.put(office.suite(), COPIES[copy])
    assert office.is_empty
    assert office.put(office.suite(), [PUBLIC])


@pytest.mark.parametrize("section", ["fresh_config", "control_config"])
def test_items_that_are_asked_beside_a_benchmark_are_held_to_the_same_marks(tmp_path: Path, section: str) -> None:
    (tmp_path / "beside.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SECRET))
    file = str(file_digest(tmp_path / "beside.jsonl"))
    for marks in ({"items": marked_items(SECRET)}, {"datasets": frozenset({file})}):
        office = Office(tmp_path, **marks)
        beside: dict[str, Any] = {section: {"path": "beside.jsonl"}}
        with pytest.raises(BadInputError, match="which the operator of this deployment marks as private"):
            office.put(office.suite(**beside), [PUBLIC])
        assert office.is_empty
    assert office.put(office.suite("approved", **beside), [PUBLIC])


def test_what_is_marked_is_told_by_a_command_from_the_suite_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Office(tmp_path)
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SECRET))
    (tmp_path / "suite.json").write_text(home.suite().model_dump_json(by_alias=True, exclude_unset=True))
    assert main(["gateway", "mark", str(tmp_path / "suite.json")]) == 0
    marks = parse_private_benchmarks(capsys.readouterr().out, source="the command")
    assert (marks.names, marks.items) == (("harmless",), marked_items(SECRET))
    assert marks.datasets == {file_digest(tmp_path / "items.jsonl")}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


@pytest.mark.parametrize("arm", ["fresh", "control"])
def test_a_router_hands_out_nothing_where_what_is_asked_beside_it_was_marked(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    row = {"id": "beside", "question": "What is 7 plus six?", "answer": "13"}
    (tmp_path / "beside.jsonl").write_text(json.dumps(row) + "\n")
    with router_bench(tmp_path, valkey_url, monkeypatch, **{f"{arm}_config": {"path": "beside.jsonl"}}) as bench:
        endpoint = {"model_id": "m", "model_version": PINNED[:19], "endpoint": "open"}
        bench.suite = Suite.model_validate({**bench.suite.plain(), "model_config": endpoint})
        bench.settings = bench.settings.model_copy(update={"endpoints": ENDPOINTS})
        audit_id = bench.submit()
        marks = PrivateBenchmarks(items=frozenset({question_digest("What is 7 plus six?", ())}))
        marked = bench.settings.model_copy(update={"private_benchmarks": marks})
        dispatcher = barred_by(marked, tasks._dispatcher())
        monkeypatch.setattr(tasks, "_dispatcher", lambda: dispatcher)
        begin(bench, audit_id)
        assert (bench.state(audit_id), bench.take(RunShards)) == (AuditState.FAILED, [])
        assert "marks as private" in bench.records.audit(audit_id).detail


@pytest.mark.parametrize(
    "marks", [{"names": ("sums",)}, {"items": frozenset({question_digest("What is 7 plus one?", ())})}]
)
def test_a_router_hands_out_nothing_of_a_benchmark_that_was_marked_after_its_submission(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, marks: dict[str, Any]
) -> None:
    endpoint = {"model_id": "m", "model_version": PINNED[:19], "endpoint": "open"}
    bench.suite = Suite.model_validate({**bench.suite.plain(), "model_config": endpoint})
    bench.settings = bench.settings.model_copy(update={"endpoints": ENDPOINTS})
    audit_id = bench.submit()
    marked = bench.settings.model_copy(update={"private_benchmarks": PrivateBenchmarks(**marks)})
    dispatcher = tasks._dispatcher()
    monkeypatch.setattr(
        tasks, "_dispatcher", lambda: replace(dispatcher, barred=Barrier(marked, bench.artifacts).cause)
    )
    begin(bench, audit_id)
    record = bench.records.audit(audit_id)
    assert (record.state, bench.take(RunShards)) == (AuditState.FAILED, [])
    assert 'marks as private, and "https://open.example/v1" is not approved for private datasets' in record.detail
    # Once the operator approves the endpoint, the audit goes on.
    mended = marked.model_copy(update={"endpoints": {"open": ENDPOINTS["open"].model_copy(update={"private": True})}})
    monkeypatch.setattr(
        tasks, "_dispatcher", lambda: replace(dispatcher, barred=Barrier(mended, bench.artifacts).cause)
    )
    begin(bench, audit_id)
    assert bench.take(RunShards) != []


def barred_by(settings: Settings, dispatcher: Dispatcher) -> Dispatcher:
    """The same router with other settings."""
    return replace(dispatcher, barred=Barrier(settings, dispatcher.artifacts).cause)


def begin(bench: Bench, audit_id: str) -> None:
    """From a submission to prompts that are handed out."""
    tasks.start(StartAudit(audit_id=audit_id))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit_id, ok=True, model_digest=PINNED, server="s"))
    if bench.state(audit_id) is AuditState.REWORDING:
        tasks.variants_built(VariantsBuilt(audit_id=audit_id, variants=bench.variants(audit_id)))


def test_a_router_judges_replicas_by_the_operator_s_word_on_all_of_them(tmp_path: Path) -> None:
    office = Office(tmp_path, names=("harmless",))
    unmarked = office.settings.model_copy(update={"private_benchmarks": PrivateBenchmarks()})
    spec = resolve_endpoint(office.suite("pool"), unmarked)
    assert not approved(spec, office.settings)
    pool = ENDPOINTS["pool"].model_copy(update={"private": True})
    assert approved(spec, office.settings.model_copy(update={"endpoints": {"pool": pool}}))
    # A list that has another server by now says nothing of the ones on record.
    other = OperatorEndpoint.model_validate({"replicas": [{"url": "grpc://a.example"}], "private": True})
    assert not approved(spec, office.settings.model_copy(update={"endpoints": {"pool": other}}))


def test_child_processes_are_told_the_same_however_long_the_list_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = {"names": ["clinical-*"], "items": [f"sha256:{n:064x}" for n in range(5_000)]}
    (tmp_path / "private.json").write_text(json.dumps(marks))
    monkeypatch.chdir(tmp_path)
    settings = Settings.from_environment({"PROCTOR_HOME": "home", "PROCTOR_PRIVATE_BENCHMARKS": "@private.json"})
    handed_on = settings.to_environment()
    # Linux hands no variable of more than 128 KiB to a program.
    assert max(map(len, handed_on.values())) < 128 << 10
    monkeypatch.chdir("/")
    assert Settings.from_environment(handed_on).private_benchmarks == settings.private_benchmarks
    said = Settings.from_environment({"PROCTOR_PRIVATE_BENCHMARKS": json.dumps({"names": ["a", "b"]})})
    assert Settings.from_environment(said.to_environment()).private_benchmarks.names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a JSON object"),
        ('{"name": []}', '"name" is an unknown key; known: names, datasets, items'),
        ('{"names": "clinical"}', "names is not a list of texts"),
        ('{"names": [""]}', "names holds"),
        ('{"names": [], "names": []}', "stands there twice"),
        ('{"items": ["sha256:abc"]}', "which is no digest"),
        (json.dumps({"names": ["a"] * (MAX_PATTERNS + 1)}), "1,001 patterns"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_marks_that_cannot_be_read_are_refused_with_the_key(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message) as refused:
        parse_private_benchmarks(text, source="PROCTOR_PRIVATE_BENCHMARKS")
    assert str(refused.value).startswith("PROCTOR_PRIVATE_BENCHMARKS")


def test_an_operator_s_file_that_is_too_large_is_the_wrong_one(tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(BadInputError, match="larger than 32 MiB"):
        Settings.from_environment({"PROCTOR_PRIVATE_BENCHMARKS": f"@{tmp_path / 'huge.json'}"})
