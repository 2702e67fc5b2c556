"""An audit through Proctor's whole durable path: the router's plan and shards, the broker, workers, stores, grades.

The services are real worker processes; the model behind the endpoint is the null model. Items come with their variants,
so nothing is reworded.
"""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import redis
from celery import Celery

from benchmarking.moments import Moments
from benchmarking.null_model import DIGEST
from benchmarking.servers import peak_bytes, process, processor_s, python, wait_for
from benchmarking.stories import made_up
from benchmarking.worker import ASKED, GRADED, MOMENTS, WEIGHED
from proctor.domain.card import ContentDigests
from proctor.domain.errors import StackError
from proctor.domain.item import Item, Measurements, Variant
from proctor.domain.manifest import CHUNK_ITEMS, VariantSet
from proctor.domain.messages import Message, StartAudit, VariantsBuilt
from proctor.domain.suite import Suite
from proctor.localstack.services import WORKERS_GIVE_WAY
from proctor.router.inputs import AuditInputs
from proctor.router.submit.endpoints import resolve_endpoint
from proctor.runtime.artifacts.chunks import put_item_chunks, put_variant_chunks
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.records.store import AuditState, Records
from proctor.runtime.settings import Settings

#: Rewordings an item, as a suite asks for by default; with the item itself they make its trials.
VARIANTS: Final = 3
TRIALS_AN_ITEM: Final = 1 + VARIANTS
#: Stories that are told anew under another number, as making up a million would take longer than asking them.
_STORIES: Final = 1_000
_POLL_S: Final = 0.05
_LONGEST_S: Final = 3_600.0
#: Answered by the null model, whatever stands here: the address only has to be one that suites may name.
_ENDPOINT: Final = "http://127.0.0.1:9/v1"
_MEASURED: Final = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)


class Run(NamedTuple):
    """How an audit went. Seconds are from the message that its variants are there."""

    trials: int
    asked_s: float
    """From the first shard that a worker took in hand to the last one that it answered."""
    answered_s: float
    """Until every completion was stored and the router had ended the stage."""
    graded_s: float
    """Until the last grade was stored, or made when the audit was scored."""
    decided_s: float
    """Until the report was written, the decision on record, and the audit at its end."""
    processor_s: float
    """Processor time of all services, the broker among them, until the scorer had all grades at hand: what other
    processes take of a shared machine is not in it."""
    router_bytes: int
    """The most memory that the router's process has had since it began."""
    broker_bytes: int
    """The most memory that Valkey's data took since it began."""

    @property
    def rate(self) -> float:
        """Trials a second from the plan to the grades."""
        return self.trials / self.graded_s


class Prepared(NamedTuple):
    """An audit that waits for its variants."""

    audit: str
    trials: int
    built: VariantsBuilt
    """The message that they are there."""


@dataclass
class Services:
    """Workers that wait for audits, and a way to give them one."""

    settings: Settings
    records: Records
    artifacts: ArtifactStore
    broker: redis.Redis
    sender: Celery
    """Not Proctor's own application: that one keeps connections to the first broker that it was given."""
    workers: dict[str, subprocess.Popen[bytes]]
    moments: dict[str, Moments]
    """What the workers note: ASKED, GRADED and WEIGHED."""
    endpoint: str = _ENDPOINT
    served_name: str = "null"
    model_version: str = DIGEST
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def run(self, trials: int) -> Run:
        """An audit of so many trials at least, none of which was asked before.

        Raises:
            StackError: it failed, or a worker ended.
        """
        audit, n_trials, built = self.prepare(trials)
        for moments in self.moments.values():
            moments.forget()
        begun_s, started_s = self._processor_s(), time.monotonic()
        self.send(built)
        answered_s = self._wait_for(audit, AuditState.SCORING) - started_s
        self._wait(audit, lambda _: self.moments[WEIGHED].span.first > 0.0)
        processor_s = self._processor_s() - begun_s
        decided_s = self._wait_for(audit, AuditState.DECIDED) - started_s
        asked = self.moments[ASKED].span
        return Run(
            trials=n_trials,
            asked_s=asked.last - asked.first,
            answered_s=answered_s,
            graded_s=max(answered_s, self.moments[GRADED].span.last - started_s),
            decided_s=decided_s,
            processor_s=processor_s,
            router_bytes=peak_bytes(self.workers["router"].pid),
            broker_bytes=int(self.broker.info("memory")["used_memory_peak"]),
        )

    def prepare(self, trials: int) -> Prepared:
        """An audit of so many trials at least, none of which was asked before, that waits for its variants.

        Raises:
            StackError: it failed, or a worker ended.
        """
        number, n_items = next(self._numbers), -(-trials // TRIALS_AN_ITEM)
        items = put_item_chunks(self.artifacts, chunks_of_stories(n_items, number))
        summary = VariantSet(variants=(), rejections=(), encoder="none")
        worded = (reworded(chunk) for chunk in chunks_of_stories(n_items, number))
        variants = put_variant_chunks(self.artifacts, worded, summary)
        audit = self._on_record(items, n_items, f"speed-{number}")
        self.send(StartAudit(audit_id=audit))
        self._wait_for(audit, AuditState.REWORDING)
        return Prepared(audit, n_items * TRIALS_AN_ITEM, VariantsBuilt(audit_id=audit, variants=variants))

    def send(self, message: Message) -> None:
        """Publish a message on its queue."""
        self.sender.send_task(
            message.task, kwargs={"message": message.plain()}, queue=message.queue, ignore_result=True
        )

    def _on_record(self, items: str, n_items: int, name: str) -> str:
        """The id of an audit of items that are in the store: a million would not fit into a command's memory."""
        suite = Suite.model_validate(
            {
                "audit_suite_id": name,
                "model_config": {
                    "model_id": self.served_name,
                    "model_version": self.model_version,
                    "endpoint": self.endpoint,
                },
                "dataset_config": {"benchmark_name": "stories", "path": "stories.jsonl", "sample_size": n_items},
                "perturbation_config": {"perturbation_strategy": "wordings", "num_variants_per_item": VARIANTS},
                "decoding_config": {"max_tokens": 256},
            }
        )
        inputs = AuditInputs(
            items=items,
            perturbation=put_model(self.artifacts, suite.perturbation),
            rewordings=None,
            contents=ContentDigests(),
            endpoint=resolve_endpoint(suite, self.settings),
        )
        return self.records.create_audit(name, suite.model_dump_json(by_alias=True), inputs.plain()).audit_id

    def _wait_for(self, audit: str, state: AuditState) -> float:
        """The moment at which an audit was seen in a state, or past it."""
        order = list(AuditState)
        self._wait(audit, lambda now: order.index(now) >= order.index(state))
        return time.monotonic()

    def _wait(self, audit: str, condition: Callable[[AuditState], bool]) -> None:
        deadline = time.monotonic() + _LONGEST_S
        while True:
            record = self.records.audit(audit)
            if record.state is AuditState.FAILED:
                raise StackError(f"the audit failed: {record.detail}")
            if condition(record.state):
                return
            for name, worker in self.workers.items():
                if worker.poll() is not None:
                    raise StackError(f"the worker {name} ended; its log is in {self.settings.home}")
            if time.monotonic() > deadline:
                raise StackError(f"the audit is still {record.state} after {_LONGEST_S:.0f} s")
            time.sleep(_POLL_S)

    def _processor_s(self) -> float:
        broker = self.broker.info("cpu")
        return sum(processor_s(worker.pid) for worker in self.workers.values()) + float(
            broker["used_cpu_user"] + broker["used_cpu_sys"]
        )


@contextmanager
def services(
    folder: Path, broker_url: str, *, inference: int, null: bool = True, small: bool = False
) -> Iterator[Services]:
    """The workers of the path, on stores in a folder.

    Args:
        inference: how many inference workers.
        null: whether the null model stands behind every endpoint.
        small: whether it is handed as little at a time as a slow model is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(home=folder, broker_url=f"{broker_url}/0", ledger_url=f"{broker_url}/1")
    names = ["router", "scorer", *(f"inference-{number}" for number in range(inference))]
    with ExitStack() as stack:
        records = Records(settings.records_url)
        stack.callback(records.close)
        moments = {name: Moments(folder / name) for name in (ASKED, GRADED, WEIGHED)}
        workers = dict[str, subprocess.Popen[bytes]]()
        for name in names:
            # A home of its own each: two workers of a service would share the file that says that they are ready.
            (folder / name / "run").mkdir(parents=True, exist_ok=True)
            variables = {
                "PROCTOR_HOME": str(folder / name),
                "PROCTOR_NICE": str(WORKERS_GIVE_WAY),
                MOMENTS: str(folder),
            }
            model = ("null-small" if small else "null") if null else "real"
            argv = python("benchmarking.worker", model, _service(name))
            log = folder / f"{name}.log"
            workers[name] = stack.enter_context(process(argv, log, {**settings.to_environment(), **variables}))
        for name, worker in workers.items():
            ready = folder / name / "run" / f"worker-{_service(name)}.ready"
            wait_for(ready.exists, worker, folder / f"{name}.log")
        broker = stack.enter_context(redis.Redis.from_url(broker_url))
        sender = Celery("benchmarking", broker=settings.broker_url, set_as_current=False)
        stack.callback(sender.close)
        artifacts = open_artifacts(settings)
        yield Services(settings, records, artifacts, broker, sender, workers, moments)


def _service(name: str) -> str:
    """The service of a worker, of which there may be several."""
    return name.partition("-")[0]


def stories(count: int, number: int, start: int = 0) -> list[Item]:
    """Items of GSM8K's length, from a place on; those of another number or place are other items."""
    told = _told(number)
    return [
        Item(
            item_id=f"{number}-{place}",
            question=f"({number}.{place}) {told[place % _STORIES].question}",
            target=told[place % _STORIES].target,
        )
        for place in range(start, start + count)
    ]


def chunks_of_stories(count: int, number: int) -> Iterator[list[Item]]:
    """The same, in chunks as they are stored."""
    return (stories(min(CHUNK_ITEMS, count - start), number, start) for start in range(0, count, CHUNK_ITEMS))


@lru_cache(maxsize=1)
def _told(number: int) -> list[Item]:
    return made_up(_STORIES, seed=number)


def reworded(items: list[Item]) -> list[Variant]:
    """Variants of all items, of the same length."""
    return [
        Variant(
            item_id=item.item_id,
            item_hash=item.content_hash,
            strategy="wordings",
            question=f"{item.question} (In wording {wording}.)",
            measurements=_MEASURED,
        )
        for item in items
        for wording in range(1, TRIALS_AN_ITEM)
    ]
