"""How models are asked: what waits, how long shards take, and what Triton says of itself."""

from __future__ import annotations

from typing import Final

from dashboards.page import Page, Section, line

SERVING: Final = Page(
    "serving",
    "Proctor: GPU and queue",
    "How models are asked: what waits, how long shards take, and what Triton says of itself.",
    (
        Section(
            "Inference workers",
            (
                line(
                    "Work and workers",
                    "Shards that wait or are in hand, and the inference workers that are there for them.",
                    "short",
                    ('sum(max by (namespace) (proctor_scaling_work{%, service="inference"}))', "work"),
                    ('count(proctor_build_info{%, worker="inference"})', "workers"),
                ),
                line(
                    "In flight",
                    "Shards that workers ask a model now, and the messages that brought them.",
                    "short",
                    ("sum by (backend) (proctor_shards_in_flight{%})", "shards, {{backend}}"),
                    ("sum by (backend) (proctor_packs_in_flight{%})", "messages, {{backend}}"),
                ),
                line(
                    "Time of a shard by stage",
                    "Median and 95th percentile of attempts that were answered.",
                    "s",
                    (
                        "histogram_quantile(0.5, sum by (stage, le) "
                        '(rate(proctor_shard_duration_seconds_bucket{%, outcome="answered"}[10m])))',
                        "{{stage}} median",
                    ),
                    (
                        "histogram_quantile(0.95, sum by (stage, le) "
                        '(rate(proctor_shard_duration_seconds_bucket{%, outcome="answered"}[10m])))',
                        "{{stage}} 95 %",
                    ),
                ),
                line(
                    "Attempts at shards",
                    "Attempts a second by backend and outcome.",
                    "ops",
                    (
                        "sum by (backend, outcome) (rate(proctor_shard_duration_seconds_count{%}[$__rate_interval]))",
                        "{{backend}} {{outcome}}",
                    ),
                    stacked=True,
                ),
                line(
                    "Endpoints away",
                    "Endpoints that do not answer, and are asked a probing shard now and then.",
                    "short",
                    ("max(proctor_pools_away{%})", "away"),
                ),
                line(
                    "Tokens written",
                    "Tokens that models wrote a second, by stage.",
                    "short",
                    (
                        'sum by (stage) (rate(proctor_tokens_total{%, kind="output"}[$__rate_interval]))',
                        "{{stage}}",
                    ),
                    stacked=True,
                ),
            ),
        ),
        Section(
            "Triton",
            (
                line(
                    "Time in the queue",
                    "Mean time that a request waited for its model: what Triton pods are scaled by.",
                    "s",
                    (
                        "sum by (model) (rate(nv_inference_queue_duration_us{%}[$__rate_interval])) / 1e6 / "
                        "(sum by (model) (rate(nv_inference_request_success{%}[$__rate_interval])) > 0)",
                        "{{model}}",
                    ),
                ),
                line(
                    "Time of computing",
                    "Mean time that a model took for a request.",
                    "s",
                    (
                        "sum by (model) (rate(nv_inference_compute_infer_duration_us{%}[$__rate_interval])) / 1e6 / "
                        "(sum by (model) (rate(nv_inference_request_success{%}[$__rate_interval])) > 0)",
                        "{{model}}",
                    ),
                ),
                line(
                    "Requests",
                    "Requests a second that ended well, and that failed.",
                    "reqps",
                    ("sum by (model) (rate(nv_inference_request_success{%}[$__rate_interval]))", "{{model}}"),
                    (
                        "sum by (model) (rate(nv_inference_request_failure{%}[$__rate_interval])) > 0",
                        "{{model}} failed",
                    ),
                ),
                line(
                    "Requests that wait",
                    "Requests that no model has taken yet.",
                    "short",
                    ("sum by (model) (nv_inference_pending_request_count{%})", "{{model}}"),
                ),
                line(
                    "Requests a batch",
                    "Mean size of the batches that models were given.",
                    "short",
                    (
                        "sum by (model) (rate(nv_inference_count{%}[$__rate_interval])) / "
                        "(sum by (model) (rate(nv_inference_exec_count{%}[$__rate_interval])) > 0)",
                        "{{model}}",
                    ),
                ),
                line(
                    "Processors of the servers",
                    "How much of their machine's processors is used, whoever uses them.",
                    "percentunit",
                    ("avg by (instance) (nv_cpu_utilization{%})", "{{instance}}"),
                ),
            ),
        ),
        Section(
            "GPUs",
            (
                line(
                    "GPU utilisation",
                    "By server and GPU, as Triton reads it. Empty where it runs on processors.",
                    "percentunit",
                    ("avg by (instance, gpu_uuid) (nv_gpu_utilization{%})", "{{instance}} {{gpu_uuid}}"),
                    width=12,
                ),
                line(
                    "GPU memory",
                    "Share that is used, by server and GPU. Empty where it runs on processors.",
                    "percentunit",
                    (
                        "sum by (instance, gpu_uuid) (nv_gpu_memory_used_bytes{%}) / "
                        "sum by (instance, gpu_uuid) (nv_gpu_memory_total_bytes{%})",
                        "{{instance}} {{gpu_uuid}}",
                    ),
                    width=12,
                ),
            ),
        ),
    ),
)
