"""`proctor power` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.studies.comparison import compare_logs
from tests.support import shared_data

KEYS = {
    "n", "discordance", "difference", "power", "exact_power", "mde", "items_needed", "target_power", "alpha", "from",
    "table", "conclusion",
}  # fmt: skip


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> dict[str, Any]:
        assert main(["power", *map(str, arguments), "--format", "json"]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert set(document) == KEYS
        return document

    return run


def test_items_give_the_smallest_difference(planned: Any) -> None:
    document = planned("--items", 200, "--discordance", 0.28)
    assert document["mde"] == pytest.approx(0.104, abs=0.0005)
    assert (document["n"], document["difference"], document["items_needed"]) == (200, None, None)
    assert document["conclusion"] == (
        "With 200 items, the smallest difference that a two-sided test at 0.05 finds with 80 % power is 10.4 points "
        "where the runs disagree on 28 % of them; McNemar's exact test, which is conservative, has 77 %."
    )


def test_a_difference_gives_the_items(planned: Any) -> None:
    assert planned("--difference", 5, "--discordance", 0.2)["items_needed"] == 626
    document = planned("--difference", 5, "--discordance", 0.28)
    assert document["items_needed"] == 877
    assert document["difference"] == 0.05
    assert "It takes 877 items" in document["conclusion"]


def test_items_and_a_difference_give_the_power(planned: Any) -> None:
    document = planned("--items", 626, "--difference", 5, "--discordance", 0.2)
    assert document["power"] == pytest.approx(0.8, abs=0.001)
    assert document["target_power"] == 0.8
    assert planned("--items", 300, "--difference", 5, "--discordance", 0.2)["power"] < 0.55


def test_level_and_power_are_the_callers_choice(planned: Any) -> None:
    default, stricter = planned("--difference", 5), planned("--difference", 5, "--alpha", 0.01, "--power", 0.9)
    assert stricter["alpha"] == 0.01
    for one, other in zip(default["table"], stricter["table"], strict=True):
        assert other["items_needed"] > 1.5 * one["items_needed"]


def test_without_a_discordance_several_are_tabulated(planned: Any) -> None:
    document = planned("--items", 500)
    assert [row["discordance"] for row in document["table"]] == [0.05, 0.1, 0.2, 0.3, 0.4]
    assert document["discordance"] is document["mde"] is None
    assert document["n"] == 500
    assert "2.8 points where the runs disagree on 5 % of them, and 7.9 points" in document["conclusion"]


def test_only_discordances_that_leave_room_for_the_difference_are_tabulated(planned: Any) -> None:
    assert [row["discordance"] for row in planned("--difference", 50)["table"]] == [0.6, 0.8, 1.0]


def test_a_difference_beyond_the_discordance_is_said_to_need_as_many_discordant_items(planned: Any) -> None:
    conclusion = planned("--items", 20, "--discordance", 0.05)["conclusion"]
    assert "34.8 points, and only where the runs disagree on as many of them" in conclusion
    assert "finds no difference at all" in planned("--items", 2)["conclusion"]


def test_two_logs_give_their_items_and_discordance(planned: Any) -> None:
    logs = [shared_data() / "lm_eval_logs" / f"{name}.jsonl" for name in ("instruct", "winner")]
    compared = compare_logs(*logs).primary
    document = planned("--from", *logs)
    assert document["n"] == compared.n
    assert document["discordance"] == (compared.only_a + compared.only_b) / compared.n
    assert document["mde"] == compared.mde
    assert document["from"] == [str(log) for log in logs]


def test_the_table_ends_with_the_conclusion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--items", "500"]) == 0
    captured = capsys.readouterr()
    assert not captured.err
    assert captured.out.startswith("discordance")
    assert captured.out.rstrip().splitlines()[-1].startswith("With 500 items, the smallest difference")


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "nothing to plan: give --items"),
        (["--items", "100", "--discordance", "28"], "for 28 % write 0.28"),
        (["--items", "100", "--discordance", "nan"], "--discordance is nan"),
        (["--difference", "0"], "--difference is 0"),
        (["--difference", "inf"], "--difference is inf"),
        (["--difference", "20", "--discordance", "0.1"], "more than a discordance of 0.1 leaves room for"),
        (["--items", "100", "--alpha", "5"], "for 5 % write 0.05"),
        (["--items", "100", "--power", "1"], "--power is 1"),
        (["--items", "100", "--power", "0.01"], "not above --alpha"),
        (["--from", "a", "b", "--discordance", "0.1"], "give one of them"),
        (["--from", "no-such-file", "neither"], "no-such-file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], why: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", *arguments, "--format", form]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    assert why in captured.err


def test_help_loads_nothing_heavy_and_teaches_by_example(tmp_path: Path) -> None:
    code = "import sys; from proctor.cli.main import main; main(['power', '--help']); print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, cwd=tmp_path)
    assert "proctor power --items 200 --discordance 0.28" in done.stdout
    assert done.stdout.rstrip().endswith("False")


@pytest.mark.parametrize(
    ("arguments", "half_width", "items_needed"),
    [
        (("--items", 500, "--accuracy", 0.5), 0.0438, None),
        (("--items", 100, "--accuracy", 0.5), 0.0980, None),
        (("--items", 500, "--accuracy", 0.9), 0.0263, None),
        (("--precision", 3), None, 1068),
        (("--precision", 4.4), None, 497),
        (("--precision", 3, "--items", 500), 0.0438, 1068),
        (("--precision", 3, "--alpha", 0.1), None, 752),
    ],
)
def test_one_accuracy_is_known_as_precisely_as_its_items_allow(
    arguments: tuple[object, ...],
    half_width: float | None,
    items_needed: int | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["power", *map(str, arguments), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["half_width"] == (None if half_width is None else pytest.approx(half_width, abs=0.0001))
    assert document["items_needed"] == items_needed


def test_it_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", "--items", "500", "--accuracy", "0.5", "--precision", "3"]) == 0
    said = capsys.readouterr().out
    assert "With 500 items, an accuracy of 50 % is known to ± 4.4 points." in said
    assert "It takes 1,068 items to know an accuracy of 50 % to ± 3 points." in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--accuracy", 0.5), "--accuracy alone plans nothing"),
        (
            ("--accuracy", 50, "--items", 500),
            "--accuracy is 50, which is not a fraction between 0 and 1; for 50 % write 0.5",
        ),
        (("--precision", 0), "--precision is 0"),
        (("--precision", 0.001), "takes more than 10,000,000 items"),
        (("--precision", 3, "--difference", 5), "--difference is of a comparison of two runs"),
    ],
)
def test_a_precision_that_cannot_be_is_one_clear_error(
    arguments: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["power", *map(str, arguments)]) == 2
    assert said in capsys.readouterr().err
