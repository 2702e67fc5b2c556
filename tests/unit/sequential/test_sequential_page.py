"""The page on the sequential design, held to the code."""

from __future__ import annotations

import json
import re

import pytest

from proctor.domain.suite import Suite
from proctor.domain.suite_design import DEFAULT_FUTILITY, DesignSection
from tests.support import REPOSITORY

PAGE = (REPOSITORY / "docs" / "sequential.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_suite_is_a_sequential_one_by_default() -> None:
    (text,) = blocks("json")
    assert Suite.model_validate(json.loads(text)).scoring.design == DesignSection(kind="sequential")


def test_its_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(code, {})
    assert re.fullmatch(r"-?\d+\.\d to \d+\.\d points after 320 items\n", capsys.readouterr().out)


def test_it_names_the_default_futility_and_looks() -> None:
    assert f"below `futility` ({DEFAULT_FUTILITY:g})" in PAGE
    looks = DesignSection(kind="sequential").looks
    assert "at a fifth of the items by default, and at each further tenth" in PAGE
    assert looks == (0.2, *(tenth / 10 for tenth in range(3, 11)))


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("selection: first", {"dataset_config": {"benchmark_name": "gsm8k", "selection": "first"}}),
        ("per_item_t_test", {"scoring_config": {"design": {"kind": "sequential"}, "method": "per_item_t_test"}}),
        ("router_worker", {"protocol_config": {"protocol": "router_worker"}}),
    ],
)
def test_what_it_says_is_refused_is(said: str, refused: dict[str, object]) -> None:
    suite = json.loads(blocks("json")[0])
    assert f"`{said}`" in PAGE
    with pytest.raises(ValueError, match="sequential beside"):
        Suite.model_validate({**suite, **refused})
