"""What is audited, how far it is, what was decided, and what goes wrong on the way."""

from __future__ import annotations

from typing import Final

from dashboards.page import Page, Section, line, number

AUDITS: Final = Page(
    "audits",
    "Proctor: audits",
    "What is audited, how far it is, what was decided, and what goes wrong on the way.",
    (
        Section(
            "Now",
            (
                number(
                    "Audits under way",
                    "Audits that have not ended. One that failed has: it waits for a person.",
                    "short",
                    'sum(max by (namespace, state) (proctor_audits{%, state!~"decided|failed|cancelled"}))',
                ),
                number(
                    "Audits that failed",
                    "They go on where they stopped once they are resumed.",
                    "short",
                    'sum(max by (namespace) (proctor_audits{%, state="failed"}))',
                ),
                number(
                    "Oldest unfinished",
                    "Time since the oldest audit that is under way, and not paused, was submitted.",
                    "s",
                    "max(proctor_oldest_unfinished_seconds{%})",
                ),
                number(
                    "Decisions in 24 h",
                    "Decisions that were put on record.",
                    "short",
                    "sum(increase(proctor_decisions_total{%}[24h]))",
                ),
                number(
                    "Trials answered a second",
                    "Over all stages; each once, whatever was delivered twice.",
                    "ops",
                    'sum(rate(proctor_trials_total{%, state="answered"}[$__rate_interval]))',
                ),
                number(
                    "Trials given up in 24 h",
                    "Dead-lettered with their shard, after its last attempt.",
                    "short",
                    "sum(increase(proctor_dead_lettered_trials_total{%}[24h]))",
                ),
            ),
        ),
        Section(
            "Work",
            (
                line(
                    "Audits by state",
                    "Audits under way by where they are. Every router tells the same number.",
                    "short",
                    (
                        "sum by (state) (max by (namespace, state) "
                        '(proctor_audits{%, state!~"decided|failed|cancelled"}))',
                        "{{state}}",
                    ),
                    stacked=True,
                ),
                line(
                    "Trials answered",
                    "Trials a second by stage and arm.",
                    "ops",
                    (
                        'sum by (stage, arm) (rate(proctor_trials_total{%, state="answered"}[$__rate_interval]))',
                        "{{stage}} {{arm}}",
                    ),
                    stacked=True,
                ),
                line(
                    "Work that waits",
                    "What waits for each service or is in its hands: what its workers are scaled by.",
                    "short",
                    ("sum by (service) (max by (namespace, service) (proctor_scaling_work{%}))", "{{service}}"),
                ),
                line(
                    "Shards",
                    "Shards of the stages under way; what is not planned yet is estimated.",
                    "short",
                    ("sum by (state) (max by (namespace, state) (proctor_shards{%}))", "{{state}}"),
                    stacked=True,
                ),
                line(
                    "Oldest unfinished by state",
                    "Time since the oldest audit in each state was submitted.",
                    "s",
                    ("max by (state) (proctor_oldest_unfinished_seconds{%})", "{{state}}"),
                ),
                line(
                    "Tokens",
                    "Tokens of answered trials a second, as endpoints report them.",
                    "short",
                    ("sum by (stage, kind) (rate(proctor_tokens_total{%}[$__rate_interval]))", "{{stage}} {{kind}}"),
                    stacked=True,
                ),
            ),
        ),
        Section(
            "What came of it",
            (
                line(
                    "Decisions",
                    "Decisions an hour by outcome.",
                    "short",
                    ("sum by (outcome) (increase(proctor_decisions_total{%}[1h]))", "{{outcome}}"),
                    stacked=True,
                ),
                line(
                    "Writes to the registry",
                    "Writes an hour by how they ended, after the last try.",
                    "short",
                    ("sum by (outcome) (increase(proctor_registry_writes_total{%}[1h]))", "{{outcome}}"),
                ),
                line(
                    "Webhooks",
                    "Deliveries an hour by what became of them.",
                    "short",
                    ("sum by (outcome) (increase(proctor_webhook_deliveries_total{%}[1h]))", "{{outcome}}"),
                ),
            ),
        ),
        Section(
            "What goes wrong",
            (
                line(
                    "Shards asked again",
                    "Shards an hour that were queued again, by cause.",
                    "short",
                    ("sum by (cause) (increase(proctor_shard_redeliveries_total{%}[1h]))", "{{cause}}"),
                ),
                line(
                    "Duplicates suppressed",
                    "Answers an hour that the ledger had already. They changed nothing.",
                    "short",
                    ("sum(increase(proctor_duplicates_suppressed_total{%}[1h]))", "duplicates"),
                ),
                line(
                    "Given up and put aside",
                    "Trials that were dead-lettered, and queue entries that nobody can handle, an hour.",
                    "short",
                    ("sum(increase(proctor_dead_lettered_trials_total{%}[1h]))", "trials"),
                    ("sum by (cause) (increase(proctor_dead_letters_total{%}[1h]))", "entries, {{cause}}"),
                ),
            ),
        ),
        Section(
            "Services",
            (
                line(
                    "Messages",
                    "Messages a second whose task ended, by task.",
                    "ops",
                    (
                        'sum by (task) (rate(proctor_messages_total{%, outcome="done"}[$__rate_interval]))',
                        "{{task}}",
                    ),
                ),
                line(
                    "Tasks that failed",
                    "Messages an hour whose task raised, or that a later version's worker is to take.",
                    "short",
                    ('sum by (outcome) (increase(proctor_messages_total{%, outcome!="done"}[1h]))', "{{outcome}}"),
                ),
                line(
                    "Time of a task, 95th percentile",
                    "By task.",
                    "s",
                    (
                        "histogram_quantile(0.95, sum by (task, le) "
                        "(rate(proctor_message_duration_seconds_bucket{%}[10m])))",
                        "{{task}}",
                    ),
                ),
                line(
                    "Requests over HTTP",
                    "Requests a second that the gateway answered, by class.",
                    "reqps",
                    ("sum by (code) (rate(proctor_http_requests_total{%}[$__rate_interval]))", "{{code}}"),
                    stacked=True,
                ),
                line(
                    "Time to an answer, 95th percentile",
                    "Of the gateway's HTTP, by route.",
                    "s",
                    (
                        "histogram_quantile(0.95, sum by (route, le) "
                        "(rate(proctor_http_request_duration_seconds_bucket{%}[10m])))",
                        "{{route}}",
                    ),
                ),
                line(
                    "Workers",
                    "Processes that are scraped, by service.",
                    "short",
                    ("count by (worker) (proctor_build_info{%})", "{{worker}}"),
                ),
            ),
        ),
    ),
)
