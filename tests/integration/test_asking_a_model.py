"""Strategies that ask a model, over an OpenAI-compatible endpoint and a real Triton server that replay what it said."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.cli.main import main
from proctor.cli.variants import asking
from tests.paraphraser import PARAPHRASER, REFUSAL, Said, recorded_rewordings, replaying
from tests.replay_server import replay_server
from tests.suites.gsm8k import gsm8k_suite
from tests.support import free_port, shared_data
from tests.triton_paraphraser import write_paraphraser
from tests.triton_server import triton_server

pytestmark = pytest.mark.timeout(240)
STRATEGIES = ("paraphrase_llm", "back_translation", "forward_full", "noisy_rewrite")
ITEMS = 20


class Endpoint(NamedTuple):
    """A rewording model, and how many prompts it has been asked."""

    url: str
    asked: Callable[[], int]


@pytest.fixture(scope="module")
def recorded() -> dict[str, str]:
    """The first questions of GSM8K with GPT-4's rewordings."""
    return dict(list(recorded_rewordings(shared_data()).items())[:ITEMS])


def translating(recorded: Mapping[str, str]) -> dict[str, str]:
    translations = {question: f"Frage {number} auf Deutsch" for number, question in enumerate(recorded)}
    return translations | dict(zip(translations.values(), recorded.values(), strict=True))


@pytest.fixture(scope="module", params=["openai", "triton"])
def server_of(
    request: pytest.FixtureRequest, recorded: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Endpoint]]:
    """The endpoint of a model for a strategy: one that translates for back_translation, one that rewords for others."""
    kinds = {"back_translation": translating(recorded), "": dict(recorded)}
    if request.param == "openai":
        with (
            replay_server({}, replaying(kinds["back_translation"])) as translator,
            replay_server({}, replaying(kinds[""])) as rewriter,
        ):

            def over_http(strategy: str) -> Endpoint:
                server = translator if strategy == "back_translation" else rewriter
                return Endpoint(server.url, lambda: len(server.asked_to_reword))

            yield over_http
        return
    folder = tmp_path_factory.mktemp("triton")
    for name, kind in (("back", kinds["back_translation"]), ("plain", kinds[""])):
        write_paraphraser(folder / name, kind)
        (folder / f"{name}-run").mkdir()
    with (
        triton_server(folder / "back", folder / "back-run") as translating_triton,
        triton_server(folder / "plain", folder / "plain-run") as rewording_triton,
    ):

        def over_grpc(strategy: str) -> Endpoint:
            server = translating_triton if strategy == "back_translation" else rewording_triton
            return Endpoint(f"grpc://127.0.0.1:{server.grpc_port}", lambda: server.answered(PARAPHRASER))

        yield over_grpc


def suite_file(folder: Path, url: str, **perturbation: Any) -> Path:
    asking_one = {"perturbation_strategy": "paraphrase_llm", "paraphrase_model": f"tests/{PARAPHRASER}"}
    if url.startswith("grpc"):
        perturbation["paraphraser"] = {"chat_template": "none", **perturbation.get("paraphraser", {})}
    return gsm8k_suite(folder, url, items=ITEMS, perturbation={**asking_one, **perturbation})


class Built(NamedTuple):
    """What the command printed, and the status it ended with."""

    exit_code: int
    stdout: str
    stderr: str


def build(folder: Path, url: str, **perturbation: Any) -> Built:
    """`proctor variants build` in this process, so that the encoder is imported once."""
    suite = suite_file(folder, url, **perturbation)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["variants", "build", str(suite), "--home", str(folder / "home"), "--format", "json"])
    return Built(status, out.getvalue(), err.getvalue())


def rejected_with(folder: Path, recorded: Mapping[str, str], said: Callable[[str, str], str | Said]) -> dict[str, int]:
    """The rejections by reason where the model says something else to every other question."""
    mixed: dict[str, str | Said] = {
        question: said(question, reworded) if number % 2 else reworded
        for number, (question, reworded) in enumerate(recorded.items())
    }
    with replay_server({}, replaying(mixed)) as server:
        built = build(folder, server.url, min_yield=0.1)
    assert built.exit_code == 0, built.stderr
    document = json.loads(built.stdout)
    assert document["items_with_variants"] >= ITEMS // 2 - 3
    rejected: dict[str, int] = document["rejected"]
    return rejected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_rewords_through_an_endpoint_and_never_asks_the_same_again(
    tmp_path: Path, server_of: Callable[[str], Endpoint], strategy: str
) -> None:
    endpoint = server_of(strategy)
    before = endpoint.asked()
    first = build(tmp_path, endpoint.url, perturbation_strategy=strategy)
    assert first.exit_code == 0, first.stderr
    document = json.loads(first.stdout)
    assert document["strategy"] == strategy
    assert document["items_with_variants"] >= 0.8 * ITEMS
    asked = endpoint.asked() - before
    assert asked >= ITEMS * (2 if strategy == "back_translation" else 1)
    second = build(tmp_path, endpoint.url, perturbation_strategy=strategy)
    again = json.loads(second.stdout)
    assert again["items_from_library"] == ITEMS
    assert not again["encoder_loaded"]
    assert endpoint.asked() - before == asked


def test_a_chain_rewords_by_a_model_and_by_rule(tmp_path: Path, recorded: dict[str, str]) -> None:
    with replay_server({}, replaying(recorded)) as server:
        built = build(tmp_path, server.url, perturbation_strategy="paraphrase_llm+typo")
    assert built.exit_code == 0, built.stderr
    assert json.loads(built.stdout)["items_with_variants"] > ITEMS / 2


def test_a_model_that_refuses_is_counted(tmp_path: Path, recorded: dict[str, str]) -> None:
    assert rejected_with(tmp_path, recorded, lambda *_: REFUSAL)["refused"] == 3 * ITEMS // 2


def test_a_model_that_echoes_the_question_is_counted(tmp_path: Path, recorded: dict[str, str]) -> None:
    assert rejected_with(tmp_path, recorded, lambda question, _: question)["unchanged"] == 3 * ITEMS // 2


def test_a_model_that_answers_the_question_is_counted(tmp_path: Path, recorded: dict[str, str]) -> None:
    answered = rejected_with(tmp_path, recorded, lambda _, reworded: f"{reworded} The answer is 7.")
    assert answered["answered"] == 3 * ITEMS // 2


def test_a_reply_that_is_cut_off_is_counted(tmp_path: Path, recorded: dict[str, str]) -> None:
    cut = rejected_with(tmp_path, recorded, lambda _, reworded: Said(reworded, "length"))
    assert cut["truncated"] == 3 * ITEMS // 2


def test_a_prompt_that_the_endpoint_refuses_is_counted_and_asked_again_by_the_next_build(
    tmp_path: Path, recorded: dict[str, str]
) -> None:
    bad = rejected_with(tmp_path, recorded, lambda *_: Said("content policy", status=400))
    assert bad["model_failed"] == 3 * ITEMS // 2
    with replay_server({}, replaying(recorded)) as server:
        mended = build(tmp_path, server.url, min_yield=0.1)
        assert len(server.asked_to_reword) >= ITEMS // 2
    assert json.loads(mended.stdout)["items_with_variants"] >= 0.8 * ITEMS


def test_a_model_that_is_away_is_one_clear_error(tmp_path: Path) -> None:
    built = build(tmp_path, f"http://127.0.0.1:{free_port()}/v1")
    assert built.exit_code == 1
    assert built.stdout == ""
    assert "did not answer" in built.stderr
    assert "refused" in built.stderr
    assert "Traceback" not in built.stderr


def test_a_model_that_is_too_slow_is_one_clear_error_and_what_came_in_time_is_kept(
    tmp_path: Path, recorded: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    answer = replaying(recorded)

    def slow(prompt: str) -> Said:
        never.wait(timeout=30)
        return answer(prompt)

    try:
        with replay_server({}, slow) as server, monkeypatch.context() as patched:
            patched.setattr(asking, "_DEADLINE_S", 1.0)
            built = build(tmp_path, server.url)
    finally:
        never.set()
    assert built.exit_code == 1
    assert "did not answer" in built.stderr
    with replay_server({}, answer) as server:
        assert build(tmp_path, server.url).exit_code == 0


def test_a_suite_without_a_rewording_model_is_refused_with_the_field_to_set(tmp_path: Path) -> None:
    built = build(tmp_path, "http://127.0.0.1:9/v1", paraphrase_model=None)
    assert built.exit_code == 2
    assert "needs paraphrase_model" in built.stderr
