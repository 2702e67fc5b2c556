"""Suites as tasks of other harnesses: the files hold each prompt as it is, and nothing that a harness would act on."""

from __future__ import annotations

import importlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.dataset import json_dataset
from inspect_ai.log import EvalLog, EvalPlan, EvalPlanStep, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig

from proctor.cli.variants.group import variants
from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.formats.logs.reading import read_answers
from proctor.formats.tasks.registry import TASK_FORMATS
from proctor.formats.tasks.task import Prompt, Task, manifest_of
from tests.harness import harness_python
from tests.unit.test_inspect_log import sample, written

HOSTILE = [
    "{{ 7 * 7 }}{% raw %}{prompt}", "  two spaces  \n\n", "2020-01-01", "1e5", "\x00\x1b[31m\u2028\x85", "👩‍💻 Ünïcode",
    '"""\'\'\'\\', "[1, 2]", "\r\n\ttabs\r",
]  # fmt: skip


def task(*, chat: bool = False, suite: str = "my-suite", **decoding: Any) -> Task:
    prompts = [
        Prompt(Trial(arm=Arm.CANONICAL, item_id=f"q{n}", prompt=text, variant_id=None), target=text)
        for n, text in enumerate(HOSTILE)
    ]
    return Task(suite, "sha256:" + "ab" * 32, Decoding(max_tokens=64, **decoding), chat, prompts)


def laid(folder: Path, harness: str, asked: Task) -> Path:
    for name, data in TASK_FORMATS[harness].files(asked).items():
        (folder / name).write_bytes(data)
    return folder / asked.name


def _read_yaml(text: str) -> Any:
    """As lm-evaluation-harness reads it, but for its functions, of which the name is enough."""
    yaml: Any = importlib.import_module("yaml")
    loader: Any = type("Loader", (yaml.SafeLoader,), {})
    loader.add_constructor("!function", lambda reader, node: reader.construct_scalar(node))
    return yaml.load(text, loader)


def rows_in_the_harness(name: str, folder: Path) -> list[dict[str, Any]]:
    """What the task's own code loads, where the harness is."""
    code = f"import json, {name} as t; print(json.dumps(list(t.load(version=1, suite_fingerprint='x')['test'])))"
    run = subprocess.run([harness_python(), "-c", code], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-4000:]
    rows: list[dict[str, Any]] = json.loads(run.stdout)
    return rows


def test_lm_eval_gets_every_setting_and_prompt_as_they_are(tmp_path: Path) -> None:
    stops = ["\n\n", '"\\', "\u2028\x85", "👩‍💻", "{{x}}"]
    asked = task(stop=tuple(stops), seed=7, temperature=0.5, top_p=0.9)
    stem = laid(tmp_path, "lm-eval", asked)
    config = _read_yaml(stem.with_suffix(".yaml").read_text("utf-8"))
    assert config["generation_kwargs"] == {
        "until": stops, "max_gen_toks": 64, "temperature": 0.5, "top_p": 0.9, "do_sample": True, "seed": 7,
    }  # fmt: skip
    assert (config["doc_to_text"], config["num_fewshot"], config["target_delimiter"]) == ("prompt", 0, "")
    assert config["custom_dataset"] == f"{asked.name}.load"
    rows = rows_in_the_harness(asked.name, tmp_path)
    assert [row["prompt"] for row in rows] == HOSTILE
    assert [row["target"] for row in rows] == HOSTILE
    assert rows[0]["prompt_sha256"] == bytes_digest(HOSTILE[0].encode()).removeprefix("sha256:")


def test_inspect_gets_every_setting_and_prompt_as_they_are(tmp_path: Path) -> None:
    asked = task(stop=("\n\n", "'''\u2028"), seed=7)
    stem = laid(tmp_path, "inspect", asked)
    samples = json_dataset(str(stem.with_suffix(".jsonl")))
    assert [one.input for one in samples] == HOSTILE
    assert [one.id for one in samples] == [prompt.trial.trial_id for prompt in asked.prompts]
    source: dict[str, Any] = {"__file__": str(stem.with_suffix(".py"))}
    exec(stem.with_suffix(".py").read_text("utf-8"), source)
    made = source[asked.name]()
    said = made.config.model_dump(exclude_none=True)
    assert said == {"temperature": 0.0, "top_p": 1.0, "max_tokens": 64, "seed": 7, "stop_seqs": ["\n\n", "'''\u2028"]}


def test_the_manifest_binds_every_prompt_and_file(tmp_path: Path) -> None:
    asked = task()
    files = TASK_FORMATS["inspect"].files(asked)
    manifest = json.loads(manifest_of(asked, "inspect", files))
    assert manifest["prompts"] == len(HOSTILE)
    assert list(manifest["prompt_digests"].values()) == [bytes_digest(text.encode()) for text in HOSTILE]
    assert manifest["files"] == {name: bytes_digest(data) for name, data in files.items()}
    again = asked._replace(prompts=list(reversed(asked.prompts)))
    assert again.plan_digest == manifest["plan_digest"], "the order is no part of the plan"
    assert asked._replace(prompts=asked.prompts[1:]).plan_digest != manifest["plan_digest"]


@pytest.mark.parametrize("suite", ["A--b.C", "../../etc", "ünï", "x" * 500])
def test_a_tasks_name_is_a_name_in_both_harnesses(suite: str) -> None:
    name = task(suite=suite).name
    assert name.isidentifier()
    assert name.isascii()
    assert len(name) < 80


def test_more_stop_texts_than_a_chat_client_sends_are_refused() -> None:
    stops = ("a", "b", "c", "d", "e")
    assert TASK_FORMATS["lm-eval"].files(task(stop=stops))
    with pytest.raises(BadInputError, match="at most 4"):
        TASK_FORMATS["lm-eval"].files(task(stop=stops, chat=True))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["suite.json"], "give FILE"),
        (["suite.json", "out.jsonl", "--output", "dir"], "give FILE"),
        (["suite.json", "--as", "inspect"], "--output DIR"),
        (["suite.json", "out.jsonl", "--as", "lm-eval", "--output", "dir"], "--output DIR"),
        (["suite.json", "--as", "lm-eval", "--output", "dir", "--with-rejections"], "jsonl alone"),
        (["suite.json", "--as", "helm", "--output", "dir"], "'jsonl', 'lm-eval', 'inspect'"),
    ],
)
def test_what_is_written_and_where_have_to_go_together(arguments: list[str], said: str) -> None:
    run = CliRunner().invoke(variants, ["export", *arguments])
    assert (run.exit_code, said in run.output) == (2, True), run.output


def logged(folder: Path, change: Callable[[EvalLog], None], **sampled: Any) -> Path:
    """A log of Inspect, changed, of one sample that no scorer saw."""
    log = read_eval_log(str(written(folder, sample("t1", **sampled), kind="json")), format="json")
    log.plan = EvalPlan(steps=[EvalPlanStep(solver="generate")], config=GenerateConfig(max_tokens=8, temperature=0.0))
    change(log)
    path = folder / "changed.json"
    write_eval_log(log, str(path))
    return path


def test_an_inspect_log_without_scores_says_what_was_sent_and_how(tmp_path: Path) -> None:
    run = read_answers(logged(tmp_path, lambda log: None, input="Q ", metadata={"trial_id": "t9"}, tokens=4))
    (answer,), (asked,) = run.answers, run.asked_with
    assert (answer.prompt, answer.trial, answer.text, answer.finish_reason) == ("Q ", "t9", "ANSWER: 18", "stop")
    assert (answer.input_tokens, answer.tokens, answer.error) == (5, 4, None)
    assert asked.values == {"max_tokens": 8, "temperature": 0.0, "seed": None, "stop": [], "chat": True}
    assert run.model == "mockllm/model"


def _system(log: EvalLog) -> None:
    log.plan.config.system_message = "Be brave."


def _solver(log: EvalLog) -> None:
    log.plan.steps.insert(0, EvalPlanStep(solver="inspect_ai/chain_of_thought"))


def _finish(log: EvalLog) -> None:
    log.plan.finish = EvalPlanStep(solver="self_critique")


@pytest.mark.parametrize("change", [_system, _solver, _finish])
def test_a_log_in_which_more_was_sent_than_the_sample_says_no_prompt(
    change: Callable[[EvalLog], None], tmp_path: Path
) -> None:
    (answer,) = read_answers(logged(tmp_path, change)).answers
    assert answer.prompt is None


def test_a_sample_of_several_messages_says_no_prompt(tmp_path: Path) -> None:
    messages = [ChatMessageSystem(content="Be brave."), ChatMessageUser(content="Q")]
    (answer,) = read_answers(logged(tmp_path, lambda log: None, input=messages)).answers
    assert answer.prompt is None


def test_settings_of_the_model_count_where_the_task_has_none_and_of_transport_none_does(tmp_path: Path) -> None:
    def change(log: EvalLog) -> None:
        log.eval.model_generate_config = GenerateConfig(temperature=1.0, top_p=0.5, max_connections=4, top_k=3)

    (asked,) = read_answers(logged(tmp_path, change)).asked_with
    assert asked.values["temperature"] == 0.0
    assert asked.values["top_p"] == 0.5
    assert asked.values["top_k"] == 3
    assert "max_connections" not in asked.values
