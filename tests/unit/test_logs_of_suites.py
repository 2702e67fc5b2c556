"""Logs held against their suite's prompts: what is taken, what is refused and in which words, what stays unknown."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.decision import Decision, DecisionOutcome
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.log_origin import LOG_BACKEND, LogOrigin
from proctor.domain.run_log import AskedWith, LoggedAnswer, RunLog
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.formats.logs.lm_eval_results import model_of_results
from proctor.formats.logs.reading import read_answers
from proctor.inference.logged import LogBackend
from proctor.inference.worker.open_backend import open_backend
from proctor.router.submit.log_keeping import keep_answers
from proctor.router.submit.logged import Matched, match_logs
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.settings import Settings
from proctor.scorer.logged import limitations_of_logs, with_origin

SETTINGS: dict[str, Any] = {
    "temperature": 0.0, "top_p": 1.0, "max_tokens": 64, "seed": None, "stop": [], "chat": False,
}  # fmt: skip


def suite(**changes: Any) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "logged",
            "model_config": {
                "model_id": "org/model-a",
                "model_version": "sha256:" + "5" * 64,
                "endpoint": "http://127.0.0.1:9/v1",
            },
            "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 3},
            "decoding_config": {"max_tokens": 64},
            **changes,
        }
    )


def trials(n_items: int = 3) -> list[Trial]:
    """A canonical trial and two reworded ones of each item."""
    found = []
    for number in range(n_items):
        item_id = f"q{number}"
        found.append(Trial(arm=Arm.CANONICAL, item_id=item_id, prompt=f"What is {number}?\nAnswer:"))
        found += [
            Trial(arm=Arm.PERTURBED, item_id=item_id, variant_id=f"v{n}", prompt=f"Say {number}, {n} times!\n")
            for n in range(2)
        ]
    return found


def row(trial: Trial, line: int, **changes: Any) -> LoggedAnswer:
    given = {"prompt": trial.prompt, "text": f"said {line}", "trial": trial.trial_id, "finish_reason": "stop"}
    return LoggedAnswer(item_id=str(line), correct=None, line=line, **{**given, "tokens": 3, **changes})


def log(rows: list[LoggedAnswer], settings: dict[str, Any] | None = None, **changes: Any) -> RunLog:
    asked = AskedWith(1, SETTINGS if settings is None else settings)
    return RunLog(
        "run.log", "inspect", "ungraded", tuple(rows), **{"model": "model-a", "asked_with": (asked,), **changes}
    )


def whole(asked: list[Trial] | None = None, **changes: Any) -> list[LoggedAnswer]:
    return [row(trial, line, **changes) for line, trial in enumerate(asked or trials(), 1)]


def matched(*logs: RunLog, known_as: str | None = None, **changes: Any) -> Matched:
    return match_logs(trials(), logs, suite(**changes), known_as=known_as)


def refused(*logs: RunLog, **given: Any) -> str:
    with pytest.raises(BadInputError) as caught:
        matched(*logs, **given)
    text = str(caught.value)
    assert text.isprintable(), "an error is one line that a terminal can be shown"
    return text


def test_every_trial_gets_the_answer_of_its_row_whatever_their_order() -> None:
    found = matched(log(list(reversed(whole()))))
    told = {trial.trial_id: f"said {line}" for line, trial in enumerate(trials(), 1)}
    assert {trial_id: one.completion.text for trial_id, one in found.answers.items()} == told
    assert (found.finish_reasons, found.token_counts, found.repeated) == ("recorded", "recorded", 0)
    assert (found.model, found.settings) == ("model-a", tuple(sorted(SETTINGS)))


def test_rows_that_name_no_trial_are_found_by_their_prompt_alone() -> None:
    asked = [trial.model_copy(update={"prompt": "the same"}) for trial in trials(1)] + trials()[3:]
    rows = [replace(one, trial=None) for one in whole(asked)]
    found = match_logs(asked, [log(rows)], suite())
    # Trials that ask the same have a row each.
    assert sorted(one.completion.text for one in found.answers.values()) == sorted(f"said {n}" for n in range(1, 10))


@pytest.mark.parametrize("changed", [" What is 0?\nAnswer:", "What is 0?\nAnswer: ", "What is 0?\r\nAnswer:", "\ud83d"])
def test_a_prompt_that_differs_by_a_byte_is_not_the_suites(changed: str) -> None:
    rows = whole()
    rows[0] = replace(rows[0], prompt=changed)
    told = refused(log(rows))
    assert "1 of the logs' 9 prompts are not those of logged" in told
    assert "run.log:1" in told
    assert "SHA-256" in told


def test_a_row_that_names_another_trial_than_it_asks_is_not_the_suites() -> None:
    rows = whole()
    rows[1], rows[2] = replace(rows[1], trial=rows[2].trial), replace(rows[2], trial=rows[1].trial)
    assert "2 of the logs' 9 prompts" in refused(log(rows))


def test_a_log_that_keeps_no_prompts_is_refused_with_what_may_have_happened() -> None:
    told = refused(log(whole(prompt=None)))
    assert "9 of the logs' 9 prompts" in told
    assert "system message" in told


def test_what_is_left_out_is_counted_and_the_first_of_it_named() -> None:
    told = refused(log(whole()[:7]))
    assert "leave out 2 of the suite's 9 prompts" in told
    assert "'q2' in arm perturbed" in told


def test_parts_of_a_run_are_one_run_and_the_same_row_again_counts_once() -> None:
    rows = whole()
    found = matched(log(rows[:5]), log(rows[4:]))
    assert (len(found.answers), found.repeated) == (9, 1)


def test_two_answers_to_one_prompt_are_refused_in_two_rows_or_in_one() -> None:
    rows = whole()
    assert "otherwise" in refused(log(rows), log([replace(rows[0], text="else")]))
    assert "2 answers to one prompt" in refused(log([replace(rows[0], samples=("else",)), *rows[1:]]))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("temperature", 0.7, "decoding_config.temperature 0.0"),
        ("max_tokens", 512, "decoding_config.max_tokens 64"),
        ("stop", ["\n"], "decoding_config.stop"),
        ("seed", 1, "decoding_config.seed None"),
        ("temperature", False, "temperature False"),
        ("chat", True, "prompt_config.chat_template is 'none'"),
        ("frequency_penalty", 1.0, "which no suite pins"),
        ("\x1b[31m", "\u202e", "which no suite pins"),
    ],
)
def test_a_setting_that_is_not_the_suites_is_refused_with_both_values(name: str, value: Any, said: str) -> None:
    told = refused(log(whole(), {**SETTINGS, name: value}))
    assert told.startswith("run.log:1: ")
    assert said in told


def test_settings_that_change_within_a_log_are_seen() -> None:
    asked = (AskedWith(1, SETTINGS), AskedWith(4, {**SETTINGS, "temperature": 1.0}))
    assert refused(log(whole(), asked_with=asked)).startswith("run.log:4: ")


def test_a_log_asked_in_more_ways_than_are_kept_is_refused_even_where_those_kept_are_the_suites() -> None:
    asked = tuple(AskedWith(n, dict(list(SETTINGS.items())[: n % 6])) for n in range(1, 9))
    assert "8 different ways" in refused(log(whole(), asked_with=asked))


def test_arms_of_different_runs_are_refused() -> None:
    canonical = [one for one, trial in zip(whole(), trials(), strict=True) if trial.arm is Arm.CANONICAL]
    reworded = [one for one, trial in zip(whole(), trials(), strict=True) if trial.arm is Arm.PERTURBED]
    unknown = {name: value for name, value in SETTINGS.items() if name != "temperature"}
    assert "records temperature" in refused(log(canonical), log(reworded, unknown))
    assert "two tools" in refused(log(canonical), replace(log(reworded), format="lighteval"))
    assert "2 models" in refused(log(canonical), log(reworded, model="org/model-a"))
    silent = [replace(one, finish_reason=None) for one in reworded]
    assert "not recorded alike in both arms" in refused(log(canonical), log(silent))


@pytest.mark.parametrize("name", ["model-a", "org/model-a", "openai-api/local/model-a", "vllm/org/model-a"])
def test_a_model_is_known_behind_the_names_of_what_serves_it(name: str) -> None:
    assert matched(log(whole(), model=name)).model == name


@pytest.mark.parametrize("name", ["model-b", "xmodel-a", "model-a-instruct", "\x1b]0;model-a"])
def test_a_log_of_another_model_is_refused_unless_it_is_said_to_be_this_one(name: str) -> None:
    assert "'org/model-a'" in refused(log(whole(), model=name))
    assert matched(log(whole(), model=name), known_as=name).answers


def test_errors_and_answers_past_the_ceiling_are_missing_answers_and_not_wrong_ones() -> None:
    rows = whole()
    rows[0] = replace(rows[0], error="\x1b[2Jtimed out\n" + "x" * 5_000)
    rows[1] = replace(rows[1], text="y" * 70_000)
    rows[2] = replace(rows[2], text=None)
    rows[3] = replace(rows[3], text="\ud83d\x00<b>", finish_reason="max_tokens")
    said = [one.completion for one in matched(log(rows)).answers.values()]
    assert [one.error is None for one in said] == [False, False, False, *[True] * 6]
    assert said[0].error is not None
    assert said[0].error.isprintable()
    assert len(said[0].error) <= 1_000
    assert (said[3].text, said[3].finish_reason) == ("\N{REPLACEMENT CHARACTER}\x00<b>", "length")


def card_of(found: Matched, **changes: Any) -> ProtocolCard:
    kept = LogOrigin(
        format=found.format,
        files=("sha256:" + "1" * 64,),
        model=found.model,
        settings=found.settings,
        finish_reasons=found.finish_reasons,
        token_counts=found.token_counts,
        answers="sha256:" + "2" * 64,
        n_answers=len(found.answers),
    )
    return protocol_card(suite(**changes), ContentDigests(), evaluator_version="p", log=kept)


def test_a_log_that_records_everything_has_the_protocol_of_an_audit_that_asked_and_another_fingerprint() -> None:
    asked = protocol_card(suite(), ContentDigests(), evaluator_version="p")
    taken = card_of(matched(log(whole())))
    assert taken.protocol_digest == asked.protocol_digest
    assert taken.fingerprint != asked.fingerprint
    assert {one.code for one in limitations_of_logs(taken)} == {"answers_from_logs"}
    assert list(limitations_of_logs(asked)) == []


def test_what_a_log_does_not_record_is_unknown_on_the_card_and_said_in_the_report() -> None:
    rows = whole(finish_reason=None, tokens=None)
    taken = card_of(matched(log(rows, {"max_tokens": 64, "temperature": 0})))
    assert taken.decoding_policy == {
        "temperature": 0.0, "top_p": "unknown", "max_tokens": 64, "seed": "unknown", "stop": "unknown",
    }  # fmt: skip
    assert taken.prompt_template["chat_template"] == "unknown"
    assert taken.protocol_digest != protocol_card(suite(), ContentDigests(), evaluator_version="p").protocol_digest
    told = {one.code: one.text for one in limitations_of_logs(taken)}
    assert set(told) == {"answers_from_logs", "settings_not_logged", "truncation_not_logged"}
    assert "chat_template, seed, stop, top_p" in told["settings_not_logged"]


def test_a_decision_says_as_its_last_reason_where_its_answers_came_from_and_stays_what_it_is() -> None:
    decision = Decision(outcome=DecisionOutcome.APPROVE, reasons=())
    taken = with_origin(decision, card_of(matched(log(whole()))))
    assert (taken.outcome, [one.code for one in taken.reasons]) == (DecisionOutcome.APPROVE, ["answers_from_logs"])
    assert with_origin(decision, protocol_card(suite(), ContentDigests(), evaluator_version="p")) == decision


def spec_of(origin: LogOrigin) -> EndpointSpec:
    return EndpointSpec(backend=LOG_BACKEND, url=origin.url, served_name="model-a", model_version=None)


def test_a_worker_answers_shards_from_the_stored_log_and_no_prompt_but_its_own(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, artifacts=str(tmp_path / "artifacts"))
    asked, rows = trials(2_000), whole(trials(2_000))
    rows[4] = replace(rows[4], error="lost")
    found = match_logs(asked, [log(rows)], suite())
    origin = keep_answers(LocalArtifacts(tmp_path / "artifacts"), asked, found, ["sha256:" + "1" * 64])
    backend = open_backend(spec_of(origin), settings)
    assert isinstance(backend, LogBackend)
    odd = asked[7].model_copy(update={"prompt": "another"})
    strange = asked[0].model_copy(update={"item_id": "unheard of"})
    shard = [asked[-1], asked[0], asked[4], odd, strange]
    probe = asyncio.run(backend.probe())
    assert (probe.ok, probe.model_digest) == (True, None), "a log proves no weights"
    said = asyncio.run(backend.complete(shard, Decoding(max_tokens=64), deadline_s=1))
    assert [one.trial_id for one in said] == [one.trial_id for one in shard]
    assert [one.text for one in said[:2]] == ["said 6000", "said 1"]
    assert [one.error for one in said[2:]] == [
        "in the log: lost", "the log answers another prompt than this one", "the log has no answer to this prompt",
    ]  # fmt: skip
    assert not any(one.retryable for one in said)


def test_answers_that_are_not_there_fail_the_probe_with_the_cause(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, artifacts=str(tmp_path / "artifacts"))
    store = LocalArtifacts(tmp_path / "artifacts")
    for digest in ("sha256:" + "9" * 64, store.put(b'{"answered": []}')):
        spec = EndpointSpec(backend=LOG_BACKEND, url=f"log:{digest}", served_name="m", model_version=None)
        probe = asyncio.run(LogBackend(spec, settings).probe())
        assert (probe.ok, digest in probe.detail) == (False, True)


def lm_eval_row(number: int, **changes: Any) -> dict[str, Any]:
    sent = {"arg_0": f"Q {number}", "arg_1": {"until": "\n", "max_gen_toks": 64, "do_sample": False, "temperature": 0}}
    return {
        "doc_id": number, "doc": {"trial_id": f"t{number}"}, "arguments": {"gen_args_0": sent}, "resps": [["A"]],
        "filter": "none", "metrics": ["exact_match"], "exact_match": 0.0, **changes,
    }  # fmt: skip


def lines(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "samples.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    return path


def test_lm_eval_rows_say_what_was_sent_and_how(tmp_path: Path) -> None:
    run = read_answers(lines(tmp_path, lm_eval_row(0), lm_eval_row(1)))
    assert [(one.prompt, one.trial, one.text) for one in run.answers] == [("Q 0", "t0", "A"), ("Q 1", "t1", "A")]
    (asked,) = run.asked_with
    assert asked.values == {"stop": ["\n"], "max_tokens": 64, "temperature": 0, "chat": False}


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        ([{"role": "user", "content": "Q"}], "Q"),
        ([{"role": "system", "content": "Be brave."}, {"role": "user", "content": "Q"}], None),
        ([{"role": "assistant", "content": "Q"}], None),
        ([{"role": "user", "content": {"text": "Q"}}], None),
        ("Q", None),
        (["Q"], None),
    ],
)
def test_of_a_chat_only_one_user_message_is_a_prompt(messages: Any, prompt: str | None, tmp_path: Path) -> None:
    arguments = {"gen_args_0": {"arg_0": [json.dumps(messages)], "arg_1": {}}}
    (answer,) = read_answers(lines(tmp_path, lm_eval_row(0, arguments=arguments))).answers
    assert answer.prompt == prompt


@pytest.mark.parametrize("arguments", [None, [], {}, {"gen_args_0": None}, {"gen_args_0": {"arg_0": 7}}, "x"])
def test_arguments_of_no_known_form_say_nothing_of_what_was_sent(arguments: Any, tmp_path: Path) -> None:
    (answer,) = read_answers(lines(tmp_path, lm_eval_row(0, arguments=arguments))).answers
    assert answer.prompt is None


def test_results_beside_the_samples_name_the_model(tmp_path: Path) -> None:
    def results(config: Any, **more: Any) -> Path:
        path = tmp_path / "results.json"
        path.write_text(json.dumps({"results": {}, "config": config, "lm_eval_version": "0.4.13", **more}, indent=1))
        return path

    assert model_of_results(results({"model_args": {"model": "a", "base_url": "b"}})) == "a"
    assert model_of_results(results({"model_args": "pretrained=org/a,dtype=float32"})) == "org/a"
    assert model_of_results(results({}, model_name="c")) == "c"
    with pytest.raises(BadInputError, match="name no model"):
        model_of_results(results({"model_args": 7}, model_name={"x": 1}))
    assert model_of_results(lines(tmp_path, lm_eval_row(0, doc={"prompt": '"lm_eval_version"'}))) is None
    (tmp_path / "broken").write_text('{"lm_eval_version": ' + "[" * 100_000)
    assert model_of_results(tmp_path / "broken") is None


def test_the_digest_of_a_prompt_is_that_of_its_bytes() -> None:
    (first, *_) = trials()
    found = matched(log(whole()))
    assert found.answers[first.trial_id].prompt == bytes_digest(first.prompt.encode())
