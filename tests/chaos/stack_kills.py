"""A local stack of which a service is killed every second: `python -m tests.chaos.stack_kills --seconds 60`.

The stack is the one of `proctor up`: Valkey, MLflow, Triton and every worker, each of them a victim, and its
supervisor starts them again. Audits are begun before the kills and among them, and all of them have to be decided when
the stack has come to rest, each with its decision in MLflow and the report of an audit that nothing disturbed; the
checker of the chaos runs looks for trials that were lost or counted twice. Times are short (a lease of 20 s), so that
what was lost is found within the run; `--own-times` takes Proctor's own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from proctor.cli.demo import EXPECTED, demo_suite
from proctor.domain.errors import StackError, StoreError
from proctor.gateway.audits import LocalDesk, local_desk
from proctor.localstack.service import ServiceState
from proctor.localstack.stack import LocalStack, StackSpec
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.settings import Settings
from proctor.runtime.timing import Timing
from tests.chaos.arithmetic import POISON
from tests.chaos.audits import report_bytes
from tests.chaos.checker import check
from tests.chaos.findings import Findings
from tests.chaos.stores import Stores

#: One after the other as `Timing` wants them, and each longer than a worker takes to start on a busy machine.
SHORT = Timing(
    reconcile_interval_s=2.0, lease_s=20.0, visibility_timeout_s=25.0, answer_time_s=35.0, grace_s=2.0, presence_s=8.0
)
#: An audit is begun so often while services are killed.
_BEGIN_EVERY_S = 10.0
_MAX_SUITES = 6


@dataclass
class Outcome:
    """What came of a run."""

    kills: Counter[str] = field(default_factory=Counter)
    audits: dict[str, AuditState] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    restarted: dict[str, str] = field(default_factory=dict)
    written: int = 0
    """Audits whose decision stands in MLflow."""
    rest_s: float = 0.0
    """From the last kill to the last decision."""
    findings: Findings = field(default_factory=Findings)
    """Of the checker, over the stores of the stack at rest."""

    @property
    def undecided(self) -> dict[str, str]:
        """Audits that were not decided, and what is said of them."""
        ended = {name: f"{state} {self.details[name]}" for name, state in self.audits.items()}
        return {name: said for name, said in ended.items() if self.audits[name] is not AuditState.DECIDED}


def run(
    home: Path,
    *,
    seconds: float,
    every_s: float = 1.0,
    seed: int = 0,
    victims: Sequence[str] = (),
    in_turn: bool = False,
    items: int = 100,
    timing: Timing = SHORT,
    patience_s: float = 300.0,
    say: Callable[[str], None] = print,
) -> Outcome:
    """Run a stack under kills, and wait until every audit has ended.

    Args:
        home: an empty folder.
        seconds: for how long a service is killed every `every_s`.
        every_s: between two kills.
        seed: of the choice of victims.
        victims: their names; all services by default.
        in_turn: whether each is killed once before any is killed again.
        items: of each audit.
        timing: the time limits of the stack.
        patience_s: how long the audits may take after the last kill.
        say: is told what happens.
    """
    rng, outcome = random.Random(seed), Outcome()
    base = Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)}).model_copy(update={"timing": timing})
    with LocalStack(home, StackSpec(metrics=True), base) as stack:
        settings = stack.start()
        with local_desk(settings) as desk:
            # One that is submitted again while it runs would only be watched.
            n_suites = min(_MAX_SUITES, math.ceil(seconds / _BEGIN_EVERY_S))
            suites = [_suite(home, settings.bundle, number, items) for number in range(n_suites)]
            calm_reports = _calm(desk, home, suites, patience_s)
            began_s = next_audit_s = time.monotonic()
            number = 0
            while (now_s := time.monotonic()) < began_s + seconds:
                if now_s >= next_audit_s:
                    next_audit_s = now_s + _BEGIN_EVERY_S
                    _begin(desk, suites[number % len(suites)], outcome)
                    number += 1
                _kill(stack, rng, victims, in_turn, outcome, say)
                time.sleep(max(0.0, now_s + every_s - time.monotonic()))
            last_kill_s = time.monotonic()
            while _look(desk, outcome) and time.monotonic() < last_kill_s + patience_s:
                time.sleep(0.2)
            outcome.rest_s = time.monotonic() - last_kill_s
            stores = Stores(home, settings.broker_url, settings.ledger_url)
            # What a worker that was killed had taken comes back when the broker's time is over.
            while (stores.waiting() or stores.held()) and time.monotonic() < last_kill_s + patience_s:
                time.sleep(0.5)
            outcome.findings = check(stores, calm_reports, fatal=POISON, sums=False)
            outcome.written = sum(desk.records.registration(audit) is not None for audit in outcome.audits)
        outcome.restarted = {row.name: row.detail for row in stack.status()}
        given_up = [row.name for row in stack.status() if row.state is ServiceState.FAILED]
        assert not given_up, f"given up: {given_up}"
    return outcome


def _suite(home: Path, bundle: Path, number: int, items: int) -> Path:
    models = list(EXPECTED)
    suite = json.loads(demo_suite(models[number % len(models)], bundle))
    path = home / f"kills-{number}.json"
    suite["dataset_config"]["sample_size"] = items
    suite["audit_suite_id"] = path.stem
    path.write_text(json.dumps(suite))
    return path


def _calm(desk: LocalDesk, home: Path, suites: Sequence[Path], patience_s: float) -> dict[str, str]:
    """Suite id → SHA-256 of the report of an audit of it, before anything is killed."""
    calm, began_s = Outcome(), time.monotonic()
    for suite in suites:
        _begin(desk, suite, calm)
    while _look(desk, calm) and time.monotonic() < began_s + patience_s:
        time.sleep(0.2)
    assert not calm.undecided, calm.undecided
    reports = zip(suites, (report_bytes(home, audit) for audit in calm.audits), strict=True)
    return {suite.stem: hashlib.sha256(report).hexdigest() for suite, report in reports}


def _begin(desk: LocalDesk, suite: Path, outcome: Outcome) -> None:
    """What `proctor audit submit` does, given again when it says that the broker or the ledger does not answer."""
    while True:
        with suppress(StackError, StoreError):
            outcome.audits[desk.submit(suite).audit.audit_id] = AuditState.CREATED
            return
        time.sleep(0.5)


def _kill(
    stack: LocalStack,
    rng: random.Random,
    victims: Sequence[str],
    in_turn: bool,
    outcome: Outcome,
    say: Callable[[str], None],
) -> None:
    live = [row for row in stack.status() if row.pid is not None and (not victims or row.name in victims)]
    if in_turn:
        fewest = min((outcome.kills[row.name] for row in live), default=0)
        live = [row for row in live if outcome.kills[row.name] == fewest]
    if live:
        row = rng.choice(live)
        assert row.pid is not None
        with suppress(ProcessLookupError):
            os.kill(row.pid, signal.SIGKILL)
            outcome.kills[row.name] += 1
            say(f"killed {row.name} ({row.state})")


def _look(desk: LocalDesk, outcome: Outcome) -> bool:
    """Note where the audits are; gives whether one has not ended."""
    for name in outcome.audits:
        record = desk.records.audit(name)
        outcome.audits[name], outcome.details[name] = record.state, record.detail
    return not all(state.ended for state in outcome.audits.values())


def main() -> int:
    """Run it, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--victim", action="append", default=[], help="a service's name; all of them by default")
    parser.add_argument("--own-times", action="store_true", help="Proctor's own time limits")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds after the last kill")
    parser.add_argument("--home", type=Path, help="kept; by default a folder that goes with the run")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        outcome = run(
            arguments.home or Path(folder) / "home",
            seconds=arguments.seconds,
            every_s=arguments.every,
            seed=arguments.seed,
            victims=arguments.victim,
            items=arguments.items,
            timing=Timing() if arguments.own_times else SHORT,
            patience_s=arguments.patience,
        )
    print(f"kills: {sum(outcome.kills.values())} ({', '.join(f'{n} {c}' for n, c in sorted(outcome.kills.items()))})")
    for name, detail in outcome.restarted.items():
        print(f"  {name}: {detail or 'never restarted'}")
    print(f"audits: {len(outcome.audits)}, undecided: {outcome.undecided or 'none'}, in MLflow: {outcome.written}")
    print(f"the last was decided {outcome.rest_s:.0f} s after the last kill")
    found = outcome.findings
    print(f"trials: {found.trials}, lost: {found.lost}, counted twice: {found.counted_twice}")
    print(f"reports compared: {found.reports_compared}, other than the calm ones: {found.reports_that_differ}")
    for violation in found.violations[:20]:
        print(f"  {violation}")
    return 1 if outcome.undecided or found.violations or outcome.written != len(outcome.audits) else 0


if __name__ == "__main__":
    sys.exit(main())
