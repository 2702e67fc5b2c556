"""A Redis that will lose the ledger's keys: a router does not begin on it, and doctor and metrics say so."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.cli.main import main
from proctor.domain.errors import BadInputError, StoreError
from proctor.localstack.doctor.configured import examine_outside
from proctor.localstack.doctor.installed import State
from proctor.runtime.metrics.collectors import LedgerCollector
from proctor.runtime.redis.promises import Facts, Verdict, check_ledger, judge, read_facts
from proctor.runtime.settings import LedgerCheck, Settings
from tests.support import free_port, valkey_server

GOOD = ("--appendonly", "yes")
EVICTING = (*GOOD, "--maxmemory-policy", "allkeys-lru")
FORGETFUL = ("--appendonly", "no", "--save", "")

Serve = Callable[..., Settings]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a Valkey with these arguments, and return settings whose ledger it is."""
    with ExitStack() as stack:

        def start(*arguments: str, user: str = "") -> Settings:
            folder = tmp_path / f"valkey-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            url = stack.enter_context(valkey_server(folder, *arguments))
            if user:
                with redis.Redis.from_url(url) as client:
                    client.execute_command(
                        "ACL", "SETUSER", "router", "on", ">secret", "~*", "&*", "+@all", *user.split()
                    )
                url = url.replace("redis://", "redis://router:secret@")
            return Settings(home=tmp_path, ledger_url=f"{url}/1")

        yield start


@pytest.mark.parametrize(
    "policy",
    ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"],
)
def test_every_policy_that_evicts_breaks_the_promise(policy: str) -> None:
    (eviction, _) = judge(Facts(policy, append_only=True, snapshots=True))
    assert eviction.verdict is Verdict.BROKEN
    assert policy in eviction.found


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (Facts("noeviction", True, False), Verdict.KEPT),
        (Facts("noeviction", True, None), Verdict.KEPT),
        (Facts("noeviction", False, True), Verdict.DOUBTFUL),
        (Facts("noeviction", False, None), Verdict.DOUBTFUL),
        (Facts("noeviction", None, None), Verdict.DOUBTFUL),
        (Facts("noeviction", False, False), Verdict.BROKEN),
    ],
)
def test_persistence_is_an_append_only_file_in_part_snapshots_and_else_nothing(facts: Facts, verdict: Verdict) -> None:
    eviction, persistence = judge(facts)
    assert (eviction.verdict, persistence.verdict) == (Verdict.KEPT, verdict)


def test_a_router_process_on_a_redis_that_evicts_does_not_begin(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = serve(*EVICTING)
    for name, value in settings.to_environment().items():
        monkeypatch.setenv(name, value)
    from proctor.runtime.messaging.tasks import worker_settings

    worker_settings.cache_clear()
    try:
        assert main(["worker", "router"]) == 1
    finally:
        worker_settings.cache_clear()
    said = capsys.readouterr().err
    assert "allkeys-lru" in said
    assert "set maxmemory-policy to noeviction" in said
    assert "PROCTOR_LEDGER_CHECK=warn" in said


@pytest.mark.parametrize(
    ("arguments", "named"), [(EVICTING, "allkeys-lru"), (FORGETFUL, "keeps nothing on disk")], ids=["evicts", "forgets"]
)
def test_what_breaks_a_promise_is_refused_unless_it_was_accepted(
    serve: Serve, arguments: tuple[str, ...], named: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = serve(*arguments)
    with pytest.raises(StoreError, match=named):
        check_ledger(settings)
    caplog.clear()
    check_ledger(settings.model_copy(update={"ledger_check": LedgerCheck.WARN}))
    assert named in caplog.text


def test_what_keeps_its_promises_goes_without_a_word(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        check_ledger(serve(*GOOD))
    assert "ledger" not in caplog.text


def test_snapshots_alone_are_warned_of(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    settings = serve()
    with redis.Redis.from_url(settings.ledger_url) as client:
        client.config_set("save", "3600 1")
    check_ledger(settings)
    assert "snapshots alone" in caplog.text


def test_where_config_is_closed_info_tells(serve: Serve) -> None:
    settings = serve(*EVICTING, user="-config")
    assert read_facts(settings.ledger_url) == Facts("allkeys-lru", append_only=True, snapshots=None)
    with pytest.raises(StoreError, match="allkeys-lru"):
        check_ledger(settings)


def test_where_config_and_info_are_closed_a_router_warns_and_begins(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    settings = serve(*EVICTING, user="-config -info")
    assert read_facts(settings.ledger_url) == Facts()
    check_ledger(settings)
    assert "it does not say whether it evicts keys" in caplog.text
    assert "noeviction" in caplog.text


def test_a_redis_that_starts_later_than_its_router_is_looked_at_all_the_same(serve: Serve) -> None:
    port, slept = free_port(), list[float]()

    def late(seconds: float) -> None:
        if not slept:
            with redis.Redis.from_url(serve(*EVICTING).ledger_url) as client:
                client.config_set("port", port)
        slept.append(seconds)

    settings = Settings(home=Path("home"), ledger_url=f"redis://127.0.0.1:{port}/1")
    with pytest.raises(StoreError, match="allkeys-lru"):
        check_ledger(settings, sleep=late)
    assert slept


def test_a_redis_that_never_comes_is_waited_for_so_long_and_then_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(home=Path("home"), ledger_url=f"redis://127.0.0.1:{free_port()}/1")
    times = iter(range(0, 999, 30))
    check_ledger(settings, patience_s=60.0, clock=lambda: float(next(times)), sleep=lambda _: None)
    assert "was not looked at" in caplog.text


@pytest.mark.parametrize("url", ["http://x/1", "nonsense"])
def test_a_url_of_no_redis_is_bad_input(url: str) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_LEDGER_URL"):
        read_facts(url)


def test_a_wrong_password_is_bad_input_and_is_not_repeated(serve: Serve) -> None:
    settings = serve(*GOOD, user="+@all")
    with pytest.raises(BadInputError, match="refuses its user and password") as raised:
        read_facts(settings.ledger_url.replace("secret", "hunter2"))
    assert "hunter2" not in str(raised.value)


def test_doctor_says_how_the_ledger_keeps_its_promises(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def finding(settings: Settings) -> Any:
        (found,) = (one for one in examine_outside(settings) if one.name == "ledger")
        return found

    good, evicting = serve(*GOOD), serve(*EVICTING)
    assert finding(good).state is State.OK
    bad = finding(evicting)
    assert (bad.state, bad.required) == (State.MISSING, True)
    assert "allkeys-lru" in bad.found
    assert "PROCTOR_LEDGER_CHECK=warn" in bad.mend
    accepted = finding(evicting.model_copy(update={"ledger_check": LedgerCheck.WARN}))
    assert (accepted.state, accepted.required) == (State.WARNING, False)
    away = finding(good.model_copy(update={"ledger_url": f"redis://127.0.0.1:{free_port()}/1"}))
    assert (away.state, away.required) == (State.WARNING, False)
    assert not [one for one in examine_outside(Settings(home=Path("home"))) if one.name == "ledger"]
    monkeypatch.setenv("PROCTOR_LEDGER_URL", evicting.ledger_url)
    assert main(["doctor", "--home", str(evicting.home), "--format", "json"]) == 1
    named = {one["name"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert named["ledger"]["state"] == "missing"


def test_the_metrics_say_how_the_ledger_keeps_its_promises(serve: Serve) -> None:
    settings = serve(*EVICTING)
    (family,) = LedgerCollector(settings.ledger_url).collect()
    found = {(one.labels["promise"], one.labels["verdict"]): one.value for one in family.samples}
    assert {pair for pair, value in found.items() if value} == {("no_eviction", "broken"), ("persistence", "kept")}
    assert len(found) == 6
    assert list(LedgerCollector(f"redis://127.0.0.1:{free_port()}/1").collect()) == []
