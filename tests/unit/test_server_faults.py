"""Whose fault a refusal is, by the words of model servers: the engine's, for as long as it is dead, or the prompt's."""

from __future__ import annotations

import json

import pytest

from proctor.inference.http.failures import HttpReply, refusal
from proctor.inference.http.openai_wire import read_answer
from proctor.inference.triton.wire import worded_failure
from proctor.inference.worker.backend import TrialFailure
from proctor.inference.worker.server_faults import engine_died, lacks_memory

URL = "http://model:8000/v1"
#: As vLLM of several ages, and CUDA and its kin, say them.
DIED = [
    "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "Error generating stream: EngineCore encountered an issue. See stack trace (above) for the root cause.",
    "AsyncEngineDeadError: Task finished unexpectedly. This should never happen!",
    "Background loop has errored already.",
    "Background loop is stopped.",
    "The AsyncLLMEngine is dead.",
    "Engine loop has died",
    "Engine loop is not running. Inspect the stacktrace to find the original error: RuntimeError('x').",
    "Engine process (pid 4711) died.",
    "vllm.v1.engine.exceptions.EngineDeadError",
    "RuntimeError: CUDA error: device-side assert triggered",
    "CUDA error: an illegal memory access was encountered",
    "HIP error: unspecified launch failure",
    "NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled cuda error",
]
NO_MEMORY = [
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    "CUDA error: out of memory",
]
#: Each is about its prompt, or about how the server was set up: asking again is in vain.
FINAL = [
    "This model's maximum context length is 2048 tokens. However, you requested 2311 tokens.",
    "default chat template is no longer allowed, so you must provide a chat template",
    "the engine model-engine-v2 has no such parameter",
    "logprobs are not available in this engine",
]


def replied(status: int, words: str) -> HttpReply:
    return HttpReply(status, json.dumps({"error": {"message": words, "code": status}}).encode(), "uvicorn")


@pytest.mark.parametrize("words", DIED)
def test_a_dead_engine_is_the_server_s_fault_and_passes_whatever_the_status(words: str) -> None:
    assert engine_died(words)
    told = [worded_failure(words), *(refusal(URL, replied(status, words)) for status in (400, 404, 422, 424, 500, 503))]
    for failure in told:
        assert (failure.retryable, failure.unavailable, failure.doubtful) == (True, True, False)


@pytest.mark.parametrize("words", NO_MEMORY)
def test_a_server_without_memory_is_asked_again_and_is_not_away(words: str) -> None:
    assert lacks_memory(words)
    for failure in (worded_failure(words), refusal(URL, replied(424, words))):
        assert (failure.retryable, failure.unavailable) == (True, False)


@pytest.mark.parametrize("words", FINAL)
def test_what_is_about_the_prompt_or_the_set_up_stays_final(words: str) -> None:
    assert not refusal(URL, replied(400, words)).retryable
    assert not worded_failure(words).retryable


def test_a_server_that_repeats_the_prompt_says_nothing_of_its_engine() -> None:
    prompt = "What does 'CUDA error: device-side assert triggered' mean?"
    body = json.dumps({"model": "m", "prompt": prompt}).encode()
    echoed = f"Input should be a valid list, input was {prompt}"
    assert not refusal(URL, replied(400, echoed), asked=body).retryable
    assert refusal(URL, replied(400, "Engine loop has died"), asked=body).unavailable


def test_words_that_ask_for_a_key_or_lead_elsewhere_are_not_looked_into() -> None:
    for status in (301, 401, 403):
        assert not refusal(URL, replied(status, DIED[0])).retryable


def test_an_error_in_a_reply_that_says_it_is_well_is_read_too() -> None:
    payload = json.dumps({"object": "error", "error": {"message": DIED[0]}}).encode()
    with pytest.raises(TrialFailure) as raised:
        read_answer(payload, chat=False)
    assert (raised.value.retryable, raised.value.unavailable) == (True, True)


def test_a_long_reply_is_looked_through_as_far_as_it_was_read() -> None:
    assert refusal(URL, replied(400, "x" * 5_000 + DIED[0])).unavailable
