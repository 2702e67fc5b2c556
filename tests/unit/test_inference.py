"""The small parts of the inference room: sampling parameters, the window, waits, the repository, the server's setup."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import platform
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError, StackError
from proctor.domain.trial import Decoding
from proctor.inference.reference.sampling import Sampling, parse_sampling
from proctor.inference.reference.triton_repository import model_config, write_model_repository
from proctor.inference.triton.vllm import sampling_parameters
from proctor.inference.worker.backend import printable
from proctor.inference.worker.retry import RetryBudget, asked_wait_s, backoff_s, duration_s, retry_after_s
from proctor.inference.worker.window import Window, map_bounded
from proctor.localstack import triton_server, triton_setup


def test_absent_sampling_parameters_are_vllms_defaults() -> None:
    assert parse_sampling("") == parse_sampling("{}") == parse_sampling('{"max_tokens": null}') == Sampling(16, ())


@given(st.integers(1, 131_072), st.lists(st.text(min_size=1), max_size=16), st.none() | st.integers(0, 2**53 - 1))
def test_what_the_client_writes_the_model_reads(max_tokens: int, stop: list[str], seed: int | None) -> None:
    policy = Decoding(max_tokens=max_tokens, stop=tuple(stop), seed=seed, top_p=0.5)
    assert parse_sampling(sampling_parameters(policy)) == Sampling(max_tokens, tuple(stop), seed=seed or 0)
    drawn = Decoding(max_tokens=max_tokens, stop=tuple(stop), seed=seed, temperature=0.7)
    assert parse_sampling(sampling_parameters(drawn)) == Sampling(max_tokens, tuple(stop), 0.7, seed or 0)


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner)).map(json.dumps))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    with contextlib.suppress(BadInputError):
        assert parse_sampling(text).max_tokens >= 1


@pytest.mark.parametrize(
    "text",
    ['{"max_tokens": 0}', '{"max_tokens": true}', '{"max_tokens": 1.5}', '{"temperature": 2.1}',
     '{"temperature": false}', '{"temperature": -1}', '{"temperature": NaN}', '{"temperature": "1"}',
     '{"temperature": 1, "top_p": 0.9}', '{"temperature": 1, "top_k": 5}', '{"seed": 1.5}',
     '{"n": 2}', '{"stop": [""]}', '{"stop": 3}', '{"logprobs": 1}'],
)  # fmt: skip
def test_a_parameter_that_cannot_be_honoured_is_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        parse_sampling(text)


def test_the_window_lets_in_what_fits_in_requests_and_bytes_and_keeps_the_order() -> None:
    most, now, order = 0, 0, []

    async def work(size: int) -> int:
        nonlocal most, now
        now += size
        most = max(most, now)
        order.append(size)
        await asyncio.sleep(0)
        now -= size
        return size

    sizes = [3, 4, 2, 9, 1, 1, 50, 1, 5, 5]
    window = Window(max_requests=3, max_bytes=10)
    assert asyncio.run(map_bounded(window, sizes, lambda size: size, work)) == sizes
    assert order == sizes
    assert most == 50, "what is larger than the window travels alone"


def test_a_failure_or_a_cancellation_leaves_no_place_taken() -> None:
    async def run() -> None:
        window = Window(max_requests=2)

        async def fail(item: int) -> None:
            await asyncio.sleep(0)
            raise RuntimeError(str(item))

        with pytest.raises(RuntimeError):
            await map_bounded(window, range(9), lambda _: 1, fail)
        stuck = asyncio.create_task(map_bounded(window, range(9), lambda _: 1, lambda _: asyncio.sleep(60)))
        for _ in range(5):
            await asyncio.sleep(0)
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        await asyncio.wait_for(asyncio.gather(window.acquire(1), window.acquire(1)), 1)

    asyncio.run(run())


def test_the_wait_between_attempts_grows_to_a_ceiling_and_is_drawn_from_the_seed() -> None:
    waits = [backoff_s(attempt, random.Random(5)) for attempt in range(1, 12)]
    assert waits == [backoff_s(attempt, random.Random(5)) for attempt in range(1, 12)]
    assert all(a <= b for a, b in itertools.pairwise(waits))
    assert all(0 <= wait <= 8 for wait in waits)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("7", 7.0), (" 0 ", 0.0), ("1.5", 1.5), ("999999999999", 600.0), ("9" * 500, 600.0),
     ("-3", None), ("soon", None), ("", None),
     ("Thu, 01 Jan 1970 00:00:30 GMT", 20.0), ("Thu, 01 Jan 1970 00:00:05 GMT", 0.0), ("٣", None)],
)  # fmt: skip
def test_a_retry_after_header_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, now=10.0) == seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("6m0s", 360.0), ("1s", 1.0), ("12ms", 0.012), ("1h2m3.5s", 600.0), ("2m3.5s", 123.5), ("5", 5.0), ("0", 0.0),
     (None, None), ("", None), ("-1s", None), ("1 s", None), ("soon", None), ("1m1", None), ("٣s", None)],
)  # fmt: skip
def test_a_duration_is_read_as_openai_writes_it(header: str | None, seconds: float | None) -> None:
    assert duration_s(header) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"}, 3.0),
        ({"retry-after-ms": "1500", "retry-after": "3"}, 1.5),
        ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "9s"}, None),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "2s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "1m",
            },
            60.0,
        ),
        ({"x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "0"}, None),
    ],
)
def test_a_refusal_is_waited_for_until_the_limit_that_is_used_up_is_free(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert asked_wait_s(headers, now=10.0) == seconds


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"]),
        st.text(max_size=70),
    )
)
def test_no_header_means_a_wait_without_end(headers: dict[str, str]) -> None:
    wait = asked_wait_s(headers, now=10.0)
    assert wait is None or 0.0 <= wait <= 600.0


def test_a_budget_ends() -> None:
    budget = RetryBudget(2)
    assert [budget.spend() for _ in range(4)] == [True, True, False, False]


@given(st.text())
def test_what_an_endpoint_says_is_printed_on_one_safe_line(text: str) -> None:
    line = printable(text)
    assert line.isprintable()
    assert len(line) <= 1000


def test_a_model_configuration_pins_the_weights_and_vllms_tensors() -> None:
    config = model_config("m", "sha256:" + "0" * 64)
    assert 'parameters { key: "model_digest" value { string_value: "sha256:' + "0" * 64 in config
    assert "decoupled: true" in config
    assert "max_batch_size: 0" in config
    assert "KIND_CPU" in config
    batched = model_config("m", "sha256:" + "0" * 64, batched=True, gpu=True, weights_folder="../m/1")
    assert "dynamic_batching" in batched
    assert "decoupled: false" in batched
    assert "KIND_GPU" in batched


def test_a_bundle_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no model"):
        write_model_repository(tmp_path)


def test_the_committed_repository_is_what_the_writer_writes(bundle: Path) -> None:
    configs = sorted((bundle / "models").glob("*/config.pbtxt"))
    assert [config.parent.name for config in configs] == ["reference-clean", "reference-leaked"]
    for config in configs:
        from proctor.inference.reference.model import weights_digest

        digest = weights_digest(config.parent / "1")
        assert config.read_text("utf-8") == model_config(config.parent.name, digest)


def test_only_the_server_and_one_stub_are_taken_out_of_the_wheel() -> None:
    names = [
        "pytriton/tritonserver/bin/tritonserver",
        "pytriton/tritonserver/backends/python/libtriton_python.so",
        "pytriton/tritonserver/python_backend_stubs/3.11/triton_python_backend_stub",
        "pytriton/tritonserver/python_backend_stubs/3.12/triton_python_backend_stub",
        "nvidia_pytriton.libs/libssl-57118d4e.so.3",
        "nvidia_pytriton.libs/libpython3-419a3a08.13.so.1.0",
        "nvidia_pytriton-0.7.0.dist-info/licenses/LICENSE",
        "pytriton/triton.py",
        "pytriton/tritonserver/",
    ]
    assert [triton_setup.needed(name, "3.11") for name in names] == [
        True, True, True, False, True, False, True, False, False
    ]  # fmt: skip


def test_a_machine_that_cannot_run_triton_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_TRITON_SERVER", raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "Linux x86-64 only" in str(triton_server.obstacle())
    assert triton_server.find() is None
    monkeypatch.undo()
    monkeypatch.setattr(triton_server, "_glibc_version", lambda: (2, 31))
    assert "glibc 2.35" in str(triton_server.platform_obstacle())
    monkeypatch.undo()
    monkeypatch.setattr(triton_server, "python_version", lambda: "3.14")
    assert "Python 3.11 and 3.12, this is 3.14" in str(triton_server.platform_obstacle())
    monkeypatch.undo()
    monkeypatch.setattr(triton_server, "libpython", lambda: None)
    assert "apt-get install libpython3" in str(triton_server.platform_obstacle())


def test_a_server_of_the_users_own_must_be_an_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = tmp_path / "bin" / "tritonserver"
    server.parent.mkdir()
    server.write_text("#!/bin/sh\n")
    monkeypatch.setenv("PROCTOR_TRITON_SERVER", str(server))
    assert "not an executable" in str(triton_server.obstacle())
    server.chmod(0o755)
    (tmp_path / "TRITON_VERSION").write_text("2.60.0\n")
    found = triton_server.find()
    assert found is not None
    assert (found.server, found.version) == (server, "2.60.0")


def test_a_bundle_without_models_starts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_TRITON_SERVER", "/bin/true")
    with pytest.raises(StackError, match=r"config\.pbtxt"):
        triton_server.triton_command(tmp_path, http_port=1, grpc_port=2, metrics_port=3, runtime_dir=tmp_path / "r")
