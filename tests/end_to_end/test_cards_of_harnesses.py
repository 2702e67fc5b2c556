"""lm-evaluation-harness, really run: what its logs record of the protocol, and that two protocols are told apart."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from proctor.evidence.paired.results import ProtocolsDifferError
from proctor.formats.logs.reading import read_log
from proctor.studies.comparison import compare_logs
from tests.harness import harness_python

# The harness imports torch and transformers for each of its runs.
pytestmark = pytest.mark.timeout(300)

TASK = """\
task: toy_sums
dataset_path: json
dataset_kwargs: {data_files: {test: items.jsonl}}
test_split: test
fewshot_split: test
output_type: generate_until
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["Question:"], do_sample: false, temperature: 0.0, max_gen_toks: 64}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 3.0}
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Samples without examples, twice, and with two examples, as the harness lays them down."""
    folder = tmp_path_factory.mktemp("harness")
    items = [{"question": f"What is {number} plus 1?", "answer": f"#### {number + 1}"} for number in range(8)]
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")
    (folder / "toy_sums.yaml").write_text(TASK, encoding="utf-8")
    found = {}
    for name, examples in (("none", "0"), ("again", "0"), ("two", "2")):
        run = subprocess.run(
            [
                *(harness_python(), "-m", "lm_eval", "run", "--model", "dummy", "--include_path", "."),
                *("--tasks", "toy_sums", "--num_fewshot", examples, "--log_samples", "--output_path", name),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "hf")},
        )
        assert run.returncode == 0, run.stderr[-4000:]
        (found[name],) = (folder / name).rglob("samples_*.jsonl")
    return found


def test_the_harness_records_its_version_the_task_and_its_examples(logs: dict[str, Path]) -> None:
    (run,) = read_log(logs["two"])
    said = run.card.protocol
    assert (said["task_set.task"], said["task_set.version"], said["split.split"]) == ("toy_sums", "3.0", "test")
    assert (said["prompt_template.n_shot"], said["decoding_policy.max_tokens"]) == (2, 64)
    assert said["evaluator.version"][0].isdigit()
    assert run.card.subject["client"] == "dummy"
    # Each question has examples of its own before it.
    assert "prompt_template.template" in run.card.unknown


def test_one_protocol_is_compared_and_another_number_of_examples_is_not(logs: dict[str, Path]) -> None:
    assert compare_logs(logs["none"], logs["again"]).protocol.differs == ()
    with pytest.raises(ProtocolsDifferError, match=r"prompt_template\.n_shot is 0 in A and 2 in B") as refused:
        compare_logs(logs["none"], logs["two"])
    assert "prompt_template.prompts" in {one.field for one in refused.value.protocol.differs}
