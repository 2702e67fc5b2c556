"""A real model behind real servers, audited: llama.cpp, vLLM and Triton's vLLM backend (`make test-models`).

One server at a time, since each keeps gigabytes: whatever is asked of it is asked in one go, and the tests look at what
it said.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from proctor.domain.trial import Completion
from proctor.inference.triton import tensors
from proctor.inference.worker.backend import Probe
from proctor.localstack.real_models import RealModels
from real_models.serving import SERVERS, Ports
from tests.models.asking import Audit, audit, one_by_one, probe
from tests.models.questions import MAX_TOKENS, N_TRIALS, completion_prompts
from tests.models.servers import drawn_ports, endpoints, kill_engine, needed, serving
from tests.standing_stack import standing_stack

# All that a server is asked is asked in a fixture: three minutes, and ten on a machine that is shared by many.
pytestmark = pytest.mark.timeout(1500)

#: Asked one after the other, of every server that is compared.
ALONE = completion_prompts()[:8]
#: Longer than what the model can read.
TOO_LONG = "word " * 9000


class World(NamedTuple):
    """A stack that is up, and where the servers will be."""

    home: Path
    endpoints: Path
    ports: dict[str, Ports]


class Said(NamedTuple):
    """All that was asked of one server."""

    audits: dict[str, Audit]
    alone: list[Completion]
    streamed: list[Completion]
    refused: Completion
    dead: list[Completion]
    """After its engine was killed; none of llama.cpp, which has no other process."""
    known: Probe
    unknown: Probe
    metrics: str


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    needed(RealModels.here(), *{part for server in SERVERS.values() for part in server.needs})
    folder, ports = tmp_path_factory.mktemp("models"), drawn_ports()
    named = endpoints(folder, ports)
    options = ("--no-triton", "--no-metrics", "--no-gateway")
    with standing_stack(folder / "home", *options, PROCTOR_ENDPOINTS=f"@{named}") as home:
        yield World(home, named, ports)


@pytest.fixture(scope="module")
def llama_cpp(world: World) -> Said:
    return _asked("llama.cpp", world, chat=(False, True))


@pytest.fixture(scope="module")
def vllm(world: World) -> Said:
    return _asked("vllm", world, chat=(False, True))


@pytest.fixture(scope="module")
def triton(world: World) -> Said:
    return _asked("triton", world, chat=(False, True))


def _asked(name: str, world: World, *, chat: tuple[bool, ...]) -> Said:
    with serving(name, world.ports[name], world.home.parent) as served:
        known, unknown = probe(served), probe(served, "another")
        audits = {"chat" if one else "completion": audit(served, world.home, world.endpoints, chat=one) for one in chat}
        alone, streamed, metrics = one_by_one(served, ALONE), list[Completion](), ""
        if name == "triton":
            with pytest.MonkeyPatch.context() as patch:
                # Of the tensors of a request `stream` alone says no.
                patch.setattr(tensors, "_FALSE", b"\x01")
                streamed = one_by_one(served, ALONE)
            metrics = httpx.get(f"http://127.0.0.1:{world.ports[name].metrics}/metrics").text
        (refused,) = one_by_one(served, [TOO_LONG])
        dead = list[Completion]()
        if name != "llama.cpp":
            kill_engine(served)
            dead = one_by_one(served, ALONE[:2], deadline_s=10)
        return Said(audits, alone, streamed, refused, dead, known, unknown, metrics)


@pytest.fixture(params=["llama_cpp", "vllm", "triton"])
def said(request: pytest.FixtureRequest) -> Said:
    found: Said = request.getfixturevalue(request.param)
    return found


def test_every_audit_through_every_server_ends_decided_with_every_answer(said: Said) -> None:
    for one in said.audits.values():
        # Approved, reviewed or blocked: 26 items can say little of a model, and what they say is not the point here.
        assert one.status in (0, 3, 4)
        assert one.result["n_trials"] == len(one.answers) == N_TRIALS
        assert one.result["accuracy_canonical"] > 0
        assert Path(one.result["report_path"]).is_file()


def test_every_answer_has_its_text_its_end_and_its_counts(said: Said) -> None:
    for one in said.audits.values():
        for answer in one.answers.values():
            assert answer.error is None
            assert answer.text.strip()
            assert answer.input_tokens is not None
            assert answer.input_tokens > 30
            assert answer.output_tokens is not None
            assert 1 < answer.output_tokens <= MAX_TOKENS
            assert answer.finish_reason != "length" or answer.output_tokens == MAX_TOKENS
        assert {answer.finish_reason for answer in one.answers.values()} <= {"stop", "length"}
        assert sum(answer.finish_reason == "stop" for answer in one.answers.values()) > N_TRIALS / 2


def test_a_server_is_known_by_the_name_that_it_serves_and_by_no_other(said: Said) -> None:
    assert said.known.ok, said.known
    assert not said.unknown.ok
    assert "another" in said.unknown.detail


def test_a_prompt_that_is_too_long_is_refused_for_good_in_the_servers_words(said: Said) -> None:
    assert said.refused.error is not None
    assert not said.refused.retryable, said.refused
    assert any(word in said.refused.error for word in ("context", "maximum", "length")), said.refused.error


@pytest.mark.parametrize("server", ["vllm", "triton"])
def test_a_server_whose_engine_died_is_away_and_no_prompt_is_to_blame(
    server: str, request: pytest.FixtureRequest
) -> None:
    said: Said = request.getfixturevalue(server)
    assert [(one.error is not None, one.retryable) for one in said.dead] == [(True, True)] * 2, said.dead
    print(f"{server}: {said.dead[-1].error}")


@pytest.mark.parametrize("server", ["llama_cpp", "vllm", "triton"])
def test_a_chat_is_the_same_tokens_as_its_template_written_out_whoever_applies_it(
    server: str, request: pytest.FixtureRequest
) -> None:
    said: Said = request.getfixturevalue(server)
    chat, completion = (said.audits[style].answers for style in ("chat", "completion"))
    assert {key: one.input_tokens for key, one in chat.items()} == {
        key: one.input_tokens for key, one in completion.items()
    }


def test_vllm_says_the_same_behind_openais_api_and_behind_triton(vllm: Said, triton: Said) -> None:
    one, other = (said.audits["completion"].answers for said in (vllm, triton))
    assert one.keys() == other.keys()
    assert all(one[key].input_tokens == other[key].input_tokens for key in one)
    same = [key for key in one if one[key].text == other[key].text]
    print(f"{len(same)} of {len(one)} answers are the same")
    # Sixteen at once share their sums, which bf16 rounds by who else is there: where two words are as likely as each
    # other either may come. The same server differs so from itself.
    assert len(same) >= len(one) - 4
    assert all(
        (one[key].finish_reason, one[key].output_tokens) == (other[key].finish_reason, other[key].output_tokens)
        for key in same
    )


def test_asked_one_by_one_vllm_and_triton_say_the_same_streamed_and_whole(vllm: Said, triton: Said) -> None:
    def outcome(said: list[Completion]) -> list[tuple[str, str, int | None, int | None]]:
        return [(one.text, one.finish_reason, one.input_tokens, one.output_tokens) for one in said]

    assert len(triton.streamed) == len(ALONE)
    # `num_input_tokens` has no dimension there, and every piece of a stream but the last has the finish reason None.
    assert outcome(triton.streamed) == outcome(triton.alone) == outcome(vllm.alone)


def test_triton_reports_the_weights_that_its_configuration_names_and_the_others_none(
    triton: Said, vllm: Said, llama_cpp: Said
) -> None:
    digests = {one.model_digest for one in triton.audits["completion"].answers.values()}
    assert digests == {triton.known.model_digest}
    assert triton.known.model_digest is not None
    assert vllm.known.model_digest is None
    assert llama_cpp.known.model_digest is None


def test_the_vllm_backend_reports_its_own_metrics_on_tritons_port(triton: Said) -> None:
    counted = [line for line in triton.metrics.splitlines() if line.startswith("vllm:generation_tokens_total{")]
    assert counted
    assert float(counted[0].rpartition(" ")[2]) > N_TRIALS
    assert "vllm:time_to_first_token_seconds" in triton.metrics
