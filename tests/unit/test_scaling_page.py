"""docs/scaling.md has the figures that the scripts print, and the sizing's arithmetic is what it says."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

import simulate_autoscaling
import size_deployment
from autoscaling.sizing import Assumptions, bytes_shown, needs
from autoscaling.unit_costs import UnitCosts, read_costs
from proctor.domain.errors import BadInputError
from tests.support import REPOSITORY

PAGE = (REPOSITORY / "docs" / "scaling.md").read_text(encoding="utf-8")
COSTS = read_costs(size_deployment.COSTS)
ROUND = UnitCosts(
    measured="never",
    router_s=1e-4,
    inference_s=1e-4,
    scorer_s=2e-4,
    redis_s=1e-5,
    redis_bytes_a_shard=1_000,
    redis_bytes_idle=1_000_000,
    object_bytes_a_trial=500,
    objects_a_trial=0.1,
    record_bytes_an_audit=10_000,
    record_bytes_an_item=1,
    record_rows_an_audit=10,
    record_rows_an_item=0.5,
)


def test_the_page_s_table_of_sizes_is_what_the_script_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert size_deployment.main([]) == 0
    assert capsys.readouterr().out.strip() in PAGE


def test_the_page_s_table_of_a_day_is_what_the_simulator_prints(capsys: pytest.CaptureFixture[str]) -> None:
    (arguments,) = re.findall(r"`scripts/simulate_autoscaling.py (--values \S+)`:", PAGE)
    assert simulate_autoscaling.main(_here(arguments)) == 0
    printed = capsys.readouterr().out
    assert _table(printed) in PAGE
    assert printed.splitlines()[0] in PAGE


def test_the_page_says_what_becomes_of_vllm_by_triton_s_queue_time(capsys: pytest.CaptureFixture[str]) -> None:
    # Claims fail there, which is what the page is about.
    assert simulate_autoscaling.main(_here("--values k8s/bases/gpu/values.yaml --gpus-by-queue-time 200")) == 1
    assert _table(capsys.readouterr().out) in PAGE


def _here(arguments: str) -> list[str]:
    return [str(REPOSITORY / word) if "/" in word else word for word in arguments.split()]


def _table(printed: str) -> str:
    return "\n".join(line for line in printed.splitlines() if line.startswith("|"))


def test_the_page_names_the_measured_costs_as_they_were_measured() -> None:
    assert COSTS.measured in PAGE
    for cost in (COSTS.router_s, COSTS.inference_s, COSTS.scorer_s, COSTS.redis_s):
        assert f"{cost * 1e6:.0f} µs" in PAGE
    assert f"{COSTS.redis_bytes_a_shard:.0f} bytes of the ledger" in PAGE
    assert f"{COSTS.object_bytes_a_trial:.0f} bytes in the artifact store" in PAGE


def test_sizes_are_products_of_costs_and_assumptions() -> None:
    given = Assumptions(output_tokens=100, gpu_tokens_s=1_000, slot_tokens_s=500, slots=2, busy=0.5)
    found = needs(8_640_000, ROUND, given)
    # 8,640,000 trials of 100 tokens in half a day are 20,000 tokens a second.
    assert (found.gpus, found.inference_pods) == (20, 20)
    assert (found.routers, found.scorers) == (1, 1)
    assert found.redis_cores == pytest.approx(0.002)
    assert found.redis_bytes == pytest.approx(1_000_000 + 0.1 * 8_640_000 / 32 * 1_000)
    assert found.object_bytes_kept == 30 * found.object_bytes_a_day == 30 * 8_640_000 * 500
    assert found.audits == 2_160
    assert found.record_rows_a_day == 2_160 * 10 + 2_160_000 * 0.5


def test_more_trials_never_need_less() -> None:
    rows = [needs(10**power, COSTS, Assumptions()) for power in range(3, 10)]
    for before, after in pairwise(rows):
        assert all(low <= high for low, high in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0.0 B"), (999, "999 B"), (1_500, "1.5 KB"), (999_600, "1.0 MB"), (12e15, "12,000 TB")]
)
def test_bytes_are_shown_in_a_unit_that_people_read(value: float, shown: str) -> None:
    assert bytes_shown(value) == shown


def test_sizes_of_one_s_own_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--trials", "5000", "--output-tokens", "2000", "--gpu-tokens", "100", "--format", "json"]
    assert size_deployment.main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["assumptions"]["output_tokens"] == 2_000
    assert [one["trials"] for one in document["needs"]] == [5_000]


def test_costs_that_are_none_are_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "costs.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"costs\.json"):
        read_costs(tmp_path / "costs.json")
    assert size_deployment.main(["--costs", str(tmp_path / "costs.json")]) == 2
    assert capsys.readouterr().err.startswith("size_deployment: ")
    with pytest.raises(SystemExit, match="2"):
        size_deployment.main(["--busy", "0"])
