"""What the logs of each tool record of their protocol, and what two of them are refused for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalPlan, EvalPlanStep, EvalRevision, EvalSample, EvalSpec
from inspect_ai.log import write_eval_log as write_log
from inspect_ai.model import GenerateConfig, ModelOutput
from inspect_ai.scorer import Score

from proctor.domain.errors import BadInputError
from proctor.domain.run_log import RunLog
from proctor.evidence.paired.results import ProtocolsDifferError
from proctor.formats.logs.reading import read_log
from proctor.scorer.report.document import to_json
from proctor.studies.comparison import as_json, compare_logs
from tests.report_samples import SampleAudit

TIME = "2026-11-21T12-00-00.123456"


def lm_eval_rows(folder: Path, *, name: str = f"samples_gsm8k_{TIME}.jsonl", prompt: str = "Q: {}\nA:") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    rows = [
        {
            "doc_id": number,
            "doc": {"question": f"What is {number} + 1?"},
            "arguments": {
                "gen_args_0": {
                    "arg_0": prompt.format(f"What is {number} + 1?", option=number),
                    "arg_1": {"until": ["Q:"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 256},
                }
            },
            "resps": [[str(number + 1)]],
            "filtered_resps": [str(number + 1)],
            "filter": "strict-match",
            "metrics": ["exact_match"],
            "exact_match": 1.0,
            "doc_hash": f"{number:064x}",
        }
        for number in range(4)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def results(samples: Path, **changes: Any) -> Path:
    """As the harness writes it beside its samples (0.4.9 and later)."""
    document = {
        "results": {"gsm8k": {}},
        "configs": {
            "gsm8k": {
                "task": "gsm8k", "dataset_path": "openai/gsm8k", "dataset_name": "main", "test_split": "test",
                "dataset_kwargs": {"revision": "e53f048"}, "num_fewshot": 5,
            }
        },
        "versions": {"gsm8k": 3.0},
        "n-shot": {"gsm8k": 5},
        "config": {
            "model": "vllm", "model_args": "pretrained=org/model,dtype=auto", "limit": None, "random_seed": 0,
            "numpy_seed": 1234, "torch_seed": 1234, "fewshot_seed": 1234,
        },
        "git_hash": "abc",
        "lm_eval_version": "0.4.9",
        "system_instruction": None,
        "chat_template": None,
    }  # fmt: skip
    document |= changes
    path = samples.with_name(f"results_{TIME}.json")
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return path


def run_of(path: Path) -> RunLog:
    (run,) = read_log(path)
    return run


def test_samples_alone_record_prompts_settings_and_filter(tmp_path: Path) -> None:
    card = run_of(lm_eval_rows(tmp_path)).card
    assert card.protocol == {
        "prompt_template.template": "Q: {question}\nA:",
        "prompt_template.chat": False,
        "decoding_policy.stop": ["Q:"],
        "decoding_policy.temperature": 0.0,
        "decoding_policy.max_tokens": 256,
        "evaluator.name": "lm-evaluation-harness",
        "metric.name": "exact_match",
        "metric.extractor": "strict-match",
    }
    assert {"evaluator.engine", "evaluator.version", "task_set.task", "decoding_policy.seed"} <= set(card.unknown)
    assert card.subject == {}


def test_the_results_beside_them_record_task_data_examples_seeds_version_and_engine(tmp_path: Path) -> None:
    samples = lm_eval_rows(tmp_path)
    results(samples)
    card = run_of(samples).card
    assert {name: value for name, value in card.protocol.items() if name.startswith(("task_set", "split"))} == {
        "task_set.task": "gsm8k",
        "task_set.version": "3.0",
        "task_set.dataset": "openai/gsm8k/main",
        "task_set.revision": "e53f048",
        "split.split": "test",
    }
    assert card.protocol["prompt_template.n_shot"] == 5
    assert card.protocol["prompt_template.fewshot_seed"] == card.protocol["decoding_policy.torch_seed"] == 1234
    assert (card.protocol["evaluator.version"], card.protocol["evaluator.engine"]) == ("0.4.9", "vllm")
    assert card.protocol["prompt_template.system_message"] is None
    assert card.subject["model"] == "org/model"
    assert card.unknown == ("decoding_policy.top_p", "decoding_policy.seed")


def test_an_api_does_not_say_which_engine_answers_behind_it(tmp_path: Path) -> None:
    samples = lm_eval_rows(tmp_path)
    results(samples, config={"model": "local-completions", "model_args": {"model": "m"}})
    card = run_of(samples).card
    assert "evaluator.engine" in card.unknown
    assert card.subject["client"] == "local-completions"


def test_results_of_another_time_are_not_these_samples(tmp_path: Path) -> None:
    samples = lm_eval_rows(tmp_path, name="samples_gsm8k_2026-11-22T12-00-00.1.jsonl")
    results(samples)
    assert "task_set.task" in run_of(samples).card.unknown


@pytest.mark.parametrize("content", ["", "{", "[]", '{"lm_eval_version": 1}', "\udcff"])
def test_results_that_are_none_are_refused_by_their_name(content: str, tmp_path: Path) -> None:
    samples = lm_eval_rows(tmp_path)
    path = samples.with_name(f"results_{TIME}.json")
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInputError) as refused:
        read_log(samples)
    assert path.name in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("odd", [7, "x", None, [], {"gsm8k": []}, {"gsm8k": {"dataset_kwargs": 7, "test_split": []}}])
def test_whatever_stands_in_the_results_the_samples_are_read(odd: Any, tmp_path: Path) -> None:
    samples = lm_eval_rows(tmp_path)
    results(samples, configs=odd, versions=odd, config=odd, **{"n-shot": odd})
    assert run_of(samples).card.protocol["evaluator.version"] == "0.4.9"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n-shot": {"gsm8k": 0}}, "prompt_template.n_shot is 5 in A and 0 in B"),
        ({"lm_eval_version": "0.4.3"}, 'evaluator.version is "0.4.9" in A and "0.4.3" in B'),
        ({"versions": {"gsm8k": 2.0}}, 'task_set.version is "3.0" in A and "2.0" in B'),
        ({"config": {"model": "hf"}}, 'evaluator.engine is "vllm" in A and "hf" in B'),
        ({"config": {"torch_seed": 1}}, "decoding_policy.torch_seed is 1234 in A and 1 in B"),
        ({"system_instruction": "Be\x1b brief."}, r'system_message is none in A and "Be\u001b brief."'),
    ],
)
def test_runs_whose_results_record_another_protocol_are_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    one, other = lm_eval_rows(tmp_path / "a"), lm_eval_rows(tmp_path / "b")
    results(one)
    results(other)
    assert compare_logs(one, other).protocol.differs == ()
    results(other, **changes)
    with pytest.raises(ProtocolsDifferError) as refused:
        compare_logs(one, other)
    assert said in str(refused.value)
    assert compare_logs(one, other, across_protocols=True).protocol == refused.value.protocol


def test_another_model_or_commit_is_the_subject_and_refuses_nothing(tmp_path: Path) -> None:
    one, other = lm_eval_rows(tmp_path / "a"), lm_eval_rows(tmp_path / "b")
    results(one)
    results(other, git_hash="def", config={"model": "vllm", "model_args": "pretrained=org/other"})
    found = as_json(compare_logs(one, other))["protocol"]
    assert found["differs"] == []
    assert (found["a"]["subject"]["model"], found["b"]["subject"]["model"]) == ("org/model", "org/other")
    assert found["a"]["fingerprint"] != found["b"]["fingerprint"]


def test_another_template_is_refused_with_both_of_them(tmp_path: Path) -> None:
    one, other = lm_eval_rows(tmp_path / "a"), lm_eval_rows(tmp_path / "b", prompt="Question: {}\nAnswer:")
    with pytest.raises(ProtocolsDifferError, match=r"prompt_template\.template is .*Q: .* in A and .*Question: "):
        compare_logs(one, other)


def test_prompts_that_hold_more_than_the_question_are_compared_one_by_one(tmp_path: Path) -> None:
    with_options = "Q: {}\nA. {option}\nA:"
    one, other = (lm_eval_rows(tmp_path / name, prompt=with_options) for name in "ab")
    assert "prompt_template.template" in run_of(one).card.unknown
    unknown = {found.field for found in compare_logs(one, other).protocol.unknown}
    assert not {"prompt_template.template", "prompt_template.n_shot"} & unknown
    third = lm_eval_rows(tmp_path / "c", prompt="Q: {}\n(A) {option}\nA:")
    with pytest.raises(ProtocolsDifferError, match=r"prompt_template\.prompts is .sha256:"):
        compare_logs(one, third)


def inspect_log(folder: Path, *, system: str | None = None, model: str = "vllm/org/model", **spec: Any) -> Path:
    folder.mkdir(exist_ok=True)
    steps = [EvalPlanStep(solver="generate", params={})]
    if system is not None:
        steps.insert(0, EvalPlanStep(solver="system_message", params={"template": system}))
    samples = [
        EvalSample(
            id=number, epoch=1, input=f"What is {number} + 1?", target=str(number + 1),
            output=ModelOutput.from_content(model, str(number + 1)), scores={"match": Score(value="C")},
        )
        for number in range(3)
    ]  # fmt: skip
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created="2026-11-21T12:00:00+00:00", task="sums", dataset=EvalDataset(name="sums-2"), model=model,
            config=EvalConfig(), packages={"inspect_ai": "0.3.285"},
            revision=EvalRevision(type="git", origin="o", commit="abc"), **spec,
        ),
        plan=EvalPlan(steps=steps, config=GenerateConfig(temperature=0.0, max_tokens=64, max_connections=7)),
        samples=samples,
    )  # fmt: skip
    path = folder / "log.json"
    write_log(log, str(path))
    return path


def test_a_log_of_inspect_records_task_solvers_settings_and_engine(tmp_path: Path) -> None:
    card = run_of(inspect_log(tmp_path, task_version=2, task_args={"subset": "easy"})).card
    assert card.protocol == {
        "task_set.task": "sums",
        "task_set.version": "2",
        "task_set.dataset": "sums-2",
        "task_set.task_args": {"subset": "easy"},
        "prompt_template.solvers": [{"solver": "generate"}],
        "prompt_template.template": "{question}",
        "prompt_template.chat": True,
        "decoding_policy.temperature": 0.0,
        "decoding_policy.max_tokens": 64,
        "decoding_policy.seed": None,
        "decoding_policy.stop": [],
        "evaluator.name": "inspect_ai",
        "evaluator.version": "0.3.285",
        "evaluator.engine": "vllm",
        "metric.extractor": "match",
    }
    assert card.subject == {"model": "vllm/org/model", "commit": "abc"}
    assert "decoding_policy.top_p" in card.unknown


def test_runs_of_inspect_with_another_system_message_or_engine_are_refused(tmp_path: Path) -> None:
    one = inspect_log(tmp_path / "a")
    with pytest.raises(ProtocolsDifferError, match=r"prompt_template\.solvers is"):
        compare_logs(one, inspect_log(tmp_path / "b", system="Be brief."))
    with pytest.raises(ProtocolsDifferError, match=r'evaluator\.engine is "vllm" in A and "hf" in B'):
        compare_logs(one, inspect_log(tmp_path / "c", model="hf/org/model"))
    found = compare_logs(one, inspect_log(tmp_path / "d", model="openai/gpt"))
    assert ("evaluator.engine", "b") in {(unknown.field, unknown.unknown_in) for unknown in found.protocol.unknown}


def test_details_of_lighteval_record_task_examples_limit_and_stop_texts(tmp_path: Path) -> None:
    rows = [
        {
            "doc": {
                "query": f"Q{number}", "id": str(number), "task_name": "gsm8k|5", "generation_size": 256,
                "stop_sequences": ["Q:"],
            },
            "model_response": {"text": ["18"]},
            "metric": {"em": 1},
        }
        for number in range(2)
    ]  # fmt: skip
    path = tmp_path / "details.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    assert run_of(path).card.protocol == {
        "task_set.task": "gsm8k",
        "prompt_template.n_shot": 5,
        "decoding_policy.stop": ["Q:"],
        "decoding_policy.max_tokens": 256,
        "evaluator.name": "lighteval",
        "metric.name": "em",
        "metric.extractor": "em",
    }


def test_a_table_records_what_every_row_of_its_columns_says(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "id,correct,tokens,max_tokens,temperature,template,model,seed\na,1,5,64,0.0,v1,m,\nb,0,64,64,0.0,v2,m,\n",
        encoding="utf-8",
    )
    run = run_of(path)
    assert run.card.protocol == {"decoding_policy.max_tokens": 64, "decoding_policy.temperature": 0.0}
    assert run.card.subject == {"model": "m"}
    # The limit is known, so token counts tell what was cut.
    assert [run.cut(answer) for answer in run.answers] == [False, True]


def test_meta_of_eval_trust_records_what_somebody_put_there(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    meta = {"n_total": 1, "max_new_tokens": 768, "temperature": 0, "model": "m", "seed": float("1e300")}
    path.write_text(json.dumps({"results": [{"id": "a", "correct": True}], "meta": meta}), encoding="utf-8")
    card = run_of(path).card
    assert card.protocol == {
        "decoding_policy.max_tokens": 768,
        "decoding_policy.temperature": 0,
        "decoding_policy.seed": 1e300,
        "evaluator.name": "eval_trust",
    }
    assert card.fingerprint.startswith("sha256:")


def report(folder: Path, name: str, **changes: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_bytes(to_json(SampleAudit(n_items=40, **changes).report()))
    return path


def test_two_reports_of_one_protocol_are_compared_by_their_canonical_answers(tmp_path: Path) -> None:
    one = report(tmp_path, "a", model_id="m/one")
    other = report(tmp_path, "b", model_id="m/two", leaked=0.0)
    found = compare_logs(one, other)
    assert found.primary.n == 37
    assert found.primary.extractor == "canonical"
    protocol = as_json(found)["protocol"]
    document = json.loads(one.read_bytes())
    assert protocol["a"]["protocol_digest"] == protocol["b"]["protocol_digest"] == document["protocol_digest"]
    assert protocol["a"]["fingerprint"] == document["fingerprint"]
    assert protocol["unknown"] == protocol["differs"] == []
    run = run_of(one)
    assert run.model == "m/one"
    right = {item["item_id"]: item["canonical_correct"] for item in document["evidence"]["perturbation"]["items"]}
    assert {answer.item_id: answer.correct for answer in run.answers} == right


def test_two_reports_of_different_protocols_are_refused(tmp_path: Path) -> None:
    one = report(tmp_path, "a")
    other = report(tmp_path, "b", changes={"decoding_config": {"max_tokens": 9}})
    with pytest.raises(ProtocolsDifferError, match=r"decoding_policy\.max_tokens is .* in A and 9 in B"):
        compare_logs(one, other)
    assert compare_logs(one, other, across_protocols=True).primary.n == 37


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found["card"]["decoding_policy"].update(max_tokens=1), "it was changed since"),
        (lambda found: found.update(card={"x": 1}), "card is not one of a Proctor of this version"),
        (lambda found: found.update(card=None), "card is not one of a Proctor of this version"),
        (lambda found: found["evidence"].update(perturbation=None), "holds no item's answers"),
        (lambda found: found.update(evidence=7), "holds no item's answers"),
        (lambda found: found["evidence"]["perturbation"]["items"].append(7), ":38: an item is 7"),
        (
            lambda found: found["evidence"]["perturbation"]["items"].append(
                found["evidence"]["perturbation"]["items"][0]
            ),
            "stands twice",
        ),
    ],
)
def test_a_report_that_is_not_as_it_was_made_is_refused_in_one_line(change: Any, said: str, tmp_path: Path) -> None:
    path = report(tmp_path, "a")
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        read_log(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
