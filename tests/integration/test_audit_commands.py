"""The commands of `proctor audit` that begin, show and steer audits: on this home's stores, and through a service."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from rich.console import Console

from proctor.cli import main as root
from proctor.cli.audits import auditing, following, showing
from proctor.cli.audits.away import Attendant
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import ProctorError
from proctor.domain.messages import Priority, StartAudit, TakeOn
from proctor.formats.suites import load_suite
from proctor.gateway.audits import LocalDesk
from proctor.gateway.client import RemoteDesk
from proctor.gateway.desk import AuditDesk
from proctor.gateway.limits import Limits
from proctor.gateway.status import AuditStatus
from proctor.router.audit import view
from proctor.router.submit.gathering import gather
from proctor.runtime.messaging import tasks
from proctor.runtime.records.audit_state import AuditState
from tests.certificates import self_signed
from tests.integration.audit_support import AuditBench, audit_bench, gateway_process, serving
from tests.support import run_proctor

TOKEN = "open-sesame-0123456789abcdef"


@dataclass
class Audits:
    """The commands, and the stores behind them."""

    bench: AuditBench
    server: tuple[str, ...]
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command."""
        self.capsys.readouterr()
        code = root.main(["audit", *map(str, arguments), *self.server])
        printed = self.capsys.readouterr()
        return code, printed.out, printed.err

    def json(self, *arguments: str | Path) -> Any:
        code, out, err = self.run(*arguments, "--format", "json")
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def here(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Audits]:
    """Commands on the stores of a home."""
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    with audit_bench(tmp_path, valkey_url) as bench:
        monkeypatch.setenv("PROCTOR_HOME", str(tmp_path))
        monkeypatch.setenv("PROCTOR_BROKER_URL", bench.settings.broker_url)
        monkeypatch.setenv("PROCTOR_LEDGER_URL", bench.settings.ledger_url)
        monkeypatch.setenv("PROCTOR_GATEWAY_TOKEN", TOKEN)
        monkeypatch.setattr("proctor.gateway.audits.send", bench.sent.append)
        yield Audits(bench, (), capsys)


@pytest.fixture
def there(here: Audits) -> Iterator[Audits]:
    """The same through a service, which asks for a token."""
    with serving(here.bench.desk, token=TOKEN) as address:
        yield replace(here, server=("--server", f"grpc://{address}"))


@pytest.fixture(params=["here", "there"])
def audits(request: pytest.FixtureRequest) -> Audits:
    """Both, one after the other."""
    found: Audits = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def once_told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Takes actions: the first is done as soon as the first line about an audit was written, and so on.

    Thus what a watch tells before an action does not hang on how soon the machine lets it look.
    """

    def set_up(*actions: Callable[[], None]) -> None:
        left = list(actions)

        def then(write: Callable[[AuditStatus, bool], None]) -> Callable[[AuditStatus, bool], None]:
            def written(status: AuditStatus, moved: bool) -> None:
                write(status, moved)
                if left:
                    left.pop(0)()

            return written

        monkeypatch.setattr(following, "_say_line", then(following._say_line))
        monkeypatch.setattr(following, "_print_json_line", then(following._print_json_line))

    return set_up


def test_submit_returns_at_once_with_the_audit_s_id(audits: Audits) -> None:
    told = audits.json("submit", audits.bench.suite_file(), "--priority", "low")
    audit = told["audit"]["audit_id"]
    assert audits.bench.sent == [StartAudit(audit_id=audit)]
    assert view(audits.bench.records, audit).inputs.priority is Priority.LOW
    assert (told["audit"]["state"], told["stopped_at"], told["notes"]) == ("created", None, [])


def test_submit_says_how_to_go_on_and_what_a_person_should_know_of_the_data(audits: Audits) -> None:
    dataset = {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 9}
    code, out, err = audits.run("submit", audits.bench.suite_file(dataset_config=dataset))
    assert (code, "has begun" in out, "proctor audit watch" in out) == (0, True, True)
    assert err.startswith("note: sample_size is 9, but ")
    assert err.endswith("items.jsonl has 8 items: all are asked\n")


def test_who_begins_or_watches_an_audit_hears_which_services_have_no_worker(audits: Audits) -> None:
    # No registry is named here: nobody waits for a worker of it.
    audits.bench.hear_of("inference", "perturbation")
    code, out, err = audits.run("submit", audits.bench.suite_file())
    assert (code, "has begun" in out) == (0, True)
    assert err == "proctor: warning: no worker of router, scorer is heard of: the audit waits for one\n"
    (shown,) = audits.json("list")
    assert "no worker of router, scorer is heard of: it waits for one" in audits.run("show", shown["audit_id"])[1]
    assert audits.json("show", shown["audit_id"])["services_away"] == ["router", "scorer"]


def test_an_audit_that_has_ended_waits_for_nobody(audits: Audits) -> None:
    audit = audits.bench.answering()
    audits.bench.hear_of()
    assert audits.run("cancel", audit)[0] == 0
    assert audits.json("show", audit)["services_away"] == []


def test_submit_of_the_same_suite_goes_on_with_the_audit_that_did_not_end(audits: Audits) -> None:
    audit = audits.bench.answering()
    _, out, _ = audits.run("submit", audits.bench.suite_file())
    assert out.startswith(f"Audit {audit} of m goes on from where it stopped, at: answering.\n")


@pytest.mark.parametrize("content", ["{", '{"audit_suite_id": 5}'])
def test_a_suite_that_cannot_be_used_is_told_with_its_file_and_nothing_is_on_record(
    content: str, audits: Audits, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content)
    code, out, err = audits.run("submit", path)
    assert (code, out) == (2, "")
    assert f"{path}: " in err
    assert audits.bench.records.audits() == []


def test_a_suite_s_file_that_is_missing_is_told_with_its_field(audits: Audits) -> None:
    (audits.bench.home / "items.jsonl").unlink()
    code, out, err = audits.run("submit", audits.bench.suite_file())
    assert (code, out) == (2, "")
    assert "items.jsonl" in err


def test_show_tells_an_audit_by_the_beginning_of_its_id(audits: Audits) -> None:
    audit = audits.bench.answering(total=5_000)
    audits.bench.answer(audit, "s0")
    audits.bench.give_up(audit, "s1", "refused \x1b[2J by the endpoint")
    code, out, err = audits.run("show", audit[:8])
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == (f"Audit {audit} of m is under way: answering, 32 of 5,000 trials, 32 given up.")
    assert "asked so far: 32 trials, 100 prompt tokens and 10 answer tokens" in out
    assert "1 shard given up: refused  by the endpoint" in out
    told = audits.json("show", audit)
    assert told["trials"] == {"planned": 5_000, "done": 32, "under_way": 0, "dead": 32}


def test_an_endpoint_that_is_away_is_told_while_its_audit_waits_for_it(audits: Audits) -> None:
    audit = audits.bench.answering()
    endpoint = view(audits.bench.records, audit).inputs.endpoint
    assert audits.json("show", audit)["away_s"] is None
    audits.bench.pools.unreachable(endpoint.pool, audit, "answer", "s0")
    assert audits.json("show", audit)["away_s"] >= 0
    assert "answering (the endpoint does not answer)" in audits.run("show", audit)[1]


def test_an_audit_that_is_not_on_record_is_told_with_those_that_are(audits: Audits) -> None:
    audit = audits.bench.submitted()
    for command in ("show", "watch", "pause", "resume", "cancel"):
        code, out, err = audits.run(command, "nothing\x1b[2J")
        assert (code, out) == (2, "")
        assert err == f"proctor: error: there is no audit 'nothing\\u001b[2J'; on record are {audit}\n"


def test_list_names_every_audit_with_its_state(audits: Audits) -> None:
    assert audits.run("list")[1].startswith("No audit is on record")
    runs, ended = audits.bench.answering("runs"), audits.bench.submitted("ended")
    audits.bench.decide(ended, DecisionOutcome.APPROVE)
    code, out, _ = audits.run("list")
    assert code == 0
    assert "Of 2 audits, 1 is under way." in out
    rows = {line.split()[0]: line for line in out.splitlines()[1:3]}
    assert "answering" in rows[runs]
    assert "0 of 128 trials" in rows[runs]
    assert "approve" in rows[ended]
    assert {row["audit_id"]: row["state"] for row in audits.json("list")} == {runs: "answering", ended: "decided"}
    assert len(audits.json("list", "--limit", "1")) == 1


@pytest.mark.parametrize(
    ("outcome", "code"), [(DecisionOutcome.APPROVE, 0), (DecisionOutcome.REVIEW, 3), (DecisionOutcome.BLOCK, 4)]
)
def test_watch_leaves_with_the_code_of_the_decision(
    outcome: DecisionOutcome, code: int, audits: Audits, once_told: Callable[..., None]
) -> None:
    audit = audits.bench.answering()
    once_told(partial(audits.bench.decide, audit, outcome))
    left, out, err = audits.run("watch", audit[:8])
    assert left == code
    assert err.splitlines() == ["m: answering", "m: decided"]
    assert out.startswith(f"Audit {audit} of m was decided: {outcome}")
    assert "registry version: 7" in out


def test_watch_of_an_audit_that_failed_or_was_cancelled_leaves_with_1(audits: Audits) -> None:
    failed, cancelled = audits.bench.submitted("failed"), audits.bench.submitted("cancelled")
    audits.bench.set(failed, AuditState.FAILED, "the endpoint is away.")
    audits.bench.set(cancelled, AuditState.CANCELLED)
    code, out, _ = audits.run("watch", failed)
    assert code == 1
    assert "failed: the endpoint is away. Once that is mended" in out
    code, out, _ = audits.run("watch", cancelled)
    assert (code, "was cancelled" in out) == (1, True)


def test_watch_prints_json_lines_alone_on_standard_output(
    audits: Audits, monkeypatch: pytest.MonkeyPatch, once_told: Callable[..., None]
) -> None:
    monkeypatch.setattr(following, "_JSON_S", 0.0)
    audit = audits.bench.answering()
    once_told(partial(audits.bench.answer, audit, "s0"), partial(audits.bench.decide, audit, DecisionOutcome.BLOCK))
    code, out, err = audits.run("watch", audit, "--format", "json")
    told = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (4, "")
    assert [told[0]["trials"]["done"], told[-1]["trials"]["done"]] == [0, 32]
    assert told[-1]["decision"]["outcome"] == "block"


def test_leaving_a_watch_says_that_the_audit_goes_on(audits: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = audits.bench.answering()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "follow", interrupted)
    code, out, err = audits.run("watch", audit[:8])
    assert (code, out) == (130, "")
    assert err.splitlines()[0] == showing.left_alone(audit, audits.server[1] if audits.server else None)
    assert view(audits.bench.records, audit).record.state is AuditState.ANSWERING


def test_an_audit_is_paused_resumed_and_cancelled(audits: Audits) -> None:
    audit = audits.bench.answering()
    audits.bench.sent.clear()
    code, out, _ = audits.run("pause", audit[:8])
    assert (code, out.splitlines()[0]) == (
        0,
        f"Audit {audit} of m is paused, at: answering (0 of 128 trials). `proctor audit resume {audit}` goes on.",
    )
    assert audits.json("resume", audit)["paused"] is False
    assert audits.json("cancel", audit)["state"] == "cancelled"
    assert audits.bench.sent == [TakeOn(audit_id=audit)] * 3
    code, out, err = audits.run("cancel", audit)
    assert (code, out) == (2, "")
    assert "ended already (cancelled)" in err


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "grpc://127.0.0.1:1"])
def test_a_service_that_is_not_there_is_told_in_one_line(server: str, audits: Audits) -> None:
    audits.server = ("--server", server)
    code, out, err = audits.run("list")
    assert (code, out) == (2 if server.startswith("http") else 1, "")
    assert err.count("\n") == 1


def test_a_wrong_token_is_told_with_where_it_is_taken_from(there: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_GATEWAY_TOKEN", "wrong")
    code, _, err = there.run("list")
    assert code == 2
    assert "PROCTOR_GATEWAY_TOKEN" in err


def test_a_service_is_spoken_to_under_tls(here: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = self_signed(here.bench.home)
    audit = here.bench.submitted()
    # gRPC's own variable, for authorities that the machine does not know.
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(certificate))
    with gateway_process(here.bench.home, "--tls-cert", str(certificate), "--tls-key", str(key)) as (_, address):
        server = f"grpcs://{address.replace('127.0.0.1', 'localhost')}"
        done = run_proctor("audit", "list", "--server", server, home=here.bench.home)
        assert (done.returncode, audit in done.stdout) == (0, True), done.stderr
        plain = run_proctor("audit", "list", "--server", server.replace("grpcs", "grpc"), home=here.bench.home)
        assert plain.returncode == 1


def test_a_submission_that_is_too_large_is_told_where_its_benchmark_can_be_put(here: Audits) -> None:
    with serving(here.bench.desk, limits=Limits(max_message_bytes=512), token=TOKEN) as address:
        there = replace(here, server=("--server", f"grpc://{address}"))
        code, _, err = there.run("submit", here.bench.suite_file())
    assert code == 1
    assert "PROCTOR_BENCHMARKS" in err


def test_a_token_that_cannot_travel_is_refused_before_it_does(there: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_GATEWAY_TOKEN", "not\na header")
    code, _, err = there.run("list")
    assert code == 2
    assert "cannot travel in a header" in err


def test_a_submission_s_message_is_in_the_router_s_queue(here: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.gateway.audits.send", tasks.send)
    assert here.run("submit", here.bench.suite_file())[0] == 0
    with redis.Redis.from_url(here.bench.settings.broker_url) as broker:
        assert broker.llen("router") == 1


def test_a_broker_that_is_away_is_told_with_what_to_do(here: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(message: object) -> None:
        raise ConnectionRefusedError("nobody listens")

    monkeypatch.setattr("proctor.gateway.audits.send", away)
    code, out, err = here.run("submit", here.bench.suite_file())
    assert (code, out) == (1, "")
    assert "`proctor up`" in err


def waited(bench: AuditBench, *, stays: bool = False) -> None:
    """What `proctor audit run` does, without a stack around it."""
    suite_file = bench.suite_file()
    data = gather(load_suite(suite_file), suite_file.parent, bench.settings.bundle)
    auditing.run_audits([data], bench.settings, attendant=Attendant(None), stays=stays)


@pytest.mark.parametrize(
    ("state", "match"),
    [
        (
            AuditState.FAILED,
            r"failed: gone\. Nothing was written to the registry\. Once that is mended, the same command",
        ),
        (AuditState.CANCELLED, r"was cancelled\. Nothing was written to the registry\.$"),
    ],
)
def test_a_run_whose_audit_comes_to_no_decision_says_why(
    state: AuditState, match: str, here: Audits, once_told: Callable[..., None]
) -> None:
    audit = here.bench.answering()
    once_told(partial(here.bench.set, audit, state, "gone."))
    with pytest.raises(ProctorError, match=match):
        waited(here.bench)
    err = here.capsys.readouterr().err.splitlines()
    assert err[0] == f"Going on with audit {audit}, which stopped at: answering. 0 of 128 answers are there."
    assert err[1:] == ["m: answering", f"m: {state}"]


@pytest.mark.parametrize(("stays", "match"), [(True, "goes on"), (False, "stops with its stack")])
def test_leaving_a_run_says_what_becomes_of_its_audit(
    stays: bool, match: str, here: Audits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seen: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(auditing, "follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        waited(here.bench, stays=stays)
    assert match in here.capsys.readouterr().err


def test_a_terminal_shows_a_bar_with_the_pace(here: Audits, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = here.bench.answering()
    here.bench.answer(audit, "s0")
    status = here.bench.desk.look(audit)
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(following, "Console", lambda **_: console)
    paced = status.model_copy(update={"rate": 16.0, "eta_s": 6.0})
    assert following.follow([[status], [paced]]) == [paced]
    assert "32/128" in shown.getvalue()
    assert "answering, 16/s, about 6 s left" in shown.getvalue()


def test_both_desks_are_asked_for_the_same_things() -> None:
    asked = {name for name in vars(AuditDesk) if not name.startswith("_")}
    assert asked <= set(dir(RemoteDesk)) & set(dir(LocalDesk))
