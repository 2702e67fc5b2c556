"""Every metric that a process may serve: its name, kind and labels. docs/metrics.md says what each means.

A metric's labels take few values: names of states, stages, arms, backends, tasks, routes. What grows with use (an
audit's id, an item, an endpoint's address) is never a label: each value would be a series that is kept for ever, and an
address may hold a secret. The exceptions are CONTAMINATION_SCORE, which names models and suites (those of the
operator's own record, so many and no more, and none where PROCTOR_METRICS_SCORES is 0), and the metrics of datasets,
which name files of the operator's own folder, a hundred at most.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: From a shard of a reference model to the lease, past which the shard is given to another worker.
_SHARD_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0)
#: From the router's steps, which take milliseconds, to rewording a benchmark.
_MESSAGE_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)
#: Of the gateway, from a probe to a submission of some megabytes.
_REQUEST_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
#: From a few rows of the record store to the longest that the API server waits.
_ADMISSION_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metric(NamedTuple):
    """One metric. Its unit is the last part of its name, before `total`; without one it counts."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


TRIALS = Metric(
    "proctor_trials_total", "counter", "Trials that were planned, answered or dead-lettered.", ("state", "stage", "arm")
)
#: Beside the state of the same name, because an alert needs a series that is there, at 0, before the first one.
DEAD_LETTERED_TRIALS = Metric(
    "proctor_dead_lettered_trials_total", "counter", "Trials that were given up with their shard."
)
SHARD_DURATION = Metric(
    "proctor_shard_duration_seconds",
    "histogram",
    "Time that an inference worker took for an attempt at a shard.",
    ("backend", "stage", "outcome"),
    _SHARD_BUCKETS_S,
)
SHARDS_IN_FLIGHT = Metric(
    "proctor_shards_in_flight", "gauge", "Shards that the worker's processes are asking a model now.", ("backend",)
)
PACKS_IN_FLIGHT = Metric("proctor_packs_in_flight", "gauge", "Messages whose shards the worker asks now.", ("backend",))
SHARD_REDELIVERIES = Metric(
    "proctor_shard_redeliveries_total", "counter", "Shards that were queued again after a lost attempt.", ("cause",)
)
SHARDS_SPLIT = Metric("proctor_shards_split_total", "counter", "Shards that were lost again and cut in smaller ones.")
TRIALS_GRADED_AHEAD = Metric(
    "proctor_trials_graded_ahead_total",
    "counter",
    "Trials that were graded before the last one was answered.",
)
POOLS_AWAY = Metric("proctor_pools_away", "gauge", "Endpoints that do not answer: only a probing shard is handed out.")
DUPLICATES_SUPPRESSED = Metric(
    "proctor_duplicates_suppressed_total", "counter", "Answers to shards that came again and changed nothing."
)
TOKENS = Metric(
    "proctor_tokens_total",
    "counter",
    "Tokens of answered trials, as endpoints report them: read (input) and written (output).",
    ("stage", "kind"),
)
DECISIONS = Metric("proctor_decisions_total", "counter", "Decisions that were put on record.", ("outcome",))
REGISTRY_WRITES = Metric(
    "proctor_registry_writes_total", "counter", "Writes of a decision to the model registry.", ("outcome",)
)
MESSAGES = Metric("proctor_messages_total", "counter", "Messages whose task ended.", ("task", "outcome"))
MESSAGES_REDELIVERED = Metric(
    "proctor_messages_redelivered_total", "counter", "Messages that the broker delivered another time.", ("task",)
)
MESSAGE_DURATION = Metric(
    "proctor_message_duration_seconds", "histogram", "Time that a message's task took.", ("task",), _MESSAGE_BUCKETS_S
)
DEAD_LETTERS = Metric(
    "proctor_dead_letters_total",
    "counter",
    "Queue entries that nobody can handle, and that were put aside.",
    ("cause",),
)
WEBHOOK_DELIVERIES = Metric(
    "proctor_webhook_deliveries_total",
    "counter",
    "Deliveries of registries' webhooks by what became of them.",
    ("registry", "outcome"),
)
HTTP_REQUESTS = Metric(
    "proctor_http_requests_total", "counter", "Requests over HTTP that were answered.", ("route", "method", "code")
)
HTTP_DURATION = Metric(
    "proctor_http_request_duration_seconds",
    "histogram",
    "Time from a request to the beginning of its answer.",
    ("route", "method"),
    _REQUEST_BUCKETS_S,
)
GRPC_REQUESTS = Metric("proctor_grpc_requests_total", "counter", "Calls over gRPC that ended.", ("method", "code"))
GRPC_DURATION = Metric(
    "proctor_grpc_request_duration_seconds",
    "histogram",
    "Time of a call over gRPC; a watch is as long as it is watched.",
    ("method",),
    _REQUEST_BUCKETS_S,
)
ADMISSION_REVIEWS = Metric(
    "proctor_admission_reviews_total",
    "counter",
    "Workloads that the admission webhook was asked about; counted by the gateway.",
    ("decision", "reason"),
)
ADMISSION_DURATION = Metric(
    "proctor_admission_duration_seconds",
    "histogram",
    "Time that the admission webhook took for an answer.",
    (),
    _ADMISSION_BUCKETS_S,
)
AUDITS = Metric("proctor_audits", "gauge", "Audits on record by state; served by the router alone.", ("state",))
SCALING_WORK = Metric(
    "proctor_scaling_work",
    "gauge",
    "What waits for a service or is in its hands, by which its workers are scaled; served by the router alone.",
    ("service",),
)
SHARDS = Metric(
    "proctor_shards",
    "gauge",
    "Shards of the stages under way by where they are; served by the router alone.",
    ("state",),
)
OLDEST_UNFINISHED = Metric(
    "proctor_oldest_unfinished_seconds",
    "gauge",
    "Time since the oldest audit that is in a state, and not paused, was submitted; served by the router alone.",
    ("state",),
)
CONTAMINATION_SCORE = Metric(
    "proctor_contamination_score",
    "gauge",
    "Contamination Score with its interval, of a model's newest version and the one before it by the same measure.",
    ("model", "suite", "audited", "bound"),
)
DATASET_ROTATION_DUE = Metric(
    "proctor_dataset_rotation_due_timestamp_seconds",
    "gauge",
    "When a dataset of one's own is due to be rotated, as Unix time; served by the router alone.",
    ("dataset",),
)
DATASET_HELD_OUT = Metric(
    "proctor_dataset_held_out",
    "gauge",
    "Items that a dataset of one's own holds out; served by the router alone.",
    ("dataset",),
)
LEDGER_PROMISES = Metric(
    "proctor_ledger_promises",
    "gauge",
    "1 at how the ledger's Redis keeps a promise; served by the router alone.",
    ("promise", "verdict"),
)
BUILD_INFO = Metric("proctor_build_info", "gauge", "1, with the version of Proctor that runs.", ("version", "worker"))

#: Every one of them.
METRICS = (
    TRIALS,
    TOKENS,
    DEAD_LETTERED_TRIALS,
    SHARD_DURATION,
    SHARDS_IN_FLIGHT,
    PACKS_IN_FLIGHT,
    SHARD_REDELIVERIES,
    SHARDS_SPLIT,
    TRIALS_GRADED_AHEAD,
    POOLS_AWAY,
    DUPLICATES_SUPPRESSED,
    DECISIONS,
    REGISTRY_WRITES,
    WEBHOOK_DELIVERIES,
    HTTP_REQUESTS,
    HTTP_DURATION,
    GRPC_REQUESTS,
    GRPC_DURATION,
    ADMISSION_REVIEWS,
    ADMISSION_DURATION,
    MESSAGES,
    MESSAGES_REDELIVERED,
    MESSAGE_DURATION,
    DEAD_LETTERS,
    AUDITS,
    OLDEST_UNFINISHED,
    SCALING_WORK,
    SHARDS,
    CONTAMINATION_SCORE,
    DATASET_ROTATION_DUE,
    DATASET_HELD_OUT,
    LEDGER_PROMISES,
    BUILD_INFO,
)
