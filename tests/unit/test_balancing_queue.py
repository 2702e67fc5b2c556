"""The length of Triton's queues, by its own metrics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from proctor.domain.endpoint import Balance, EndpointSpec, Replica
from proctor.inference.balancing.member import Member
from proctor.inference.balancing.queue_watch import QueueWatch, pending_requests
from tests.answering_http import Reply, serving
from tests.scripted_servers import ScriptedServer

METRICS = """\
# HELP nv_inference_count Number of inferences performed
# TYPE nv_inference_count counter
nv_inference_count{model="m",version="1"} 9
# HELP nv_inference_pending_request_count Instantaneous number of pending requests awaiting execution per-model.
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="m",version="1"} 3
nv_inference_pending_request_count{model="m",version="2"} 4.000000
nv_inference_pending_request_count{model="other",version="1"} 50
"""


def test_the_queues_of_all_versions_of_the_model_count_and_no_others() -> None:
    assert pending_requests(METRICS.encode(), "m") == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html>",
        "nv_inference_pending_request_count{",
        'nv_inference_pending_request_count{model="m"} NaN',
        METRICS[:300],
    ],
)
def test_metrics_that_say_nothing_of_the_queue_are_none(text: str) -> None:
    assert pending_requests(text.encode(), "m") is None


def member(url: str, metrics_url: str | None) -> Member:
    replica = Replica(url=url, metrics_url=metrics_url)
    spec = EndpointSpec(backend="triton", url=url, served_name="m", model_version=None, balance=Balance.LEAST_LOADED)
    return Member(replica, spec, ScriptedServer(spec), random.Random(0))


def watched(*members: Member, until: Callable[[], bool]) -> None:
    """Look at the queues until it is so."""

    async def main() -> None:
        task = asyncio.create_task(QueueWatch("m", lambda: members, every_s=0.01).run())
        while not until():  # noqa: ASYNC110 - a server in another thread knows no events
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_the_queue_of_a_server_with_metrics_is_known_and_one_without_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(lambda *_: Reply(body=METRICS.encode())) as server:
        known, unknown = member("grpc://a", f"{server.url}/metrics"), member("grpc://b", None)
        watched(known, unknown, until=lambda: len(server.asked) > 3)
    assert (known.queued, unknown.queued) == (7, 0)
    assert caplog.text.count("has no queue metrics") == 1
    assert "grpc://b" in caplog.text


def test_a_queue_that_can_no_longer_be_seen_counts_for_nothing() -> None:
    with serving(lambda *_: Reply(500)) as server:
        lost = member("grpc://a", f"{server.url}/metrics")
        lost.queued = 9
        watched(lost, until=lambda: not lost.queued)
    assert server.asked
