"""Log formats of other distributions: asked for what Proctor does not know, and held to the same bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from proctor.cli.main import main
from proctor.domain.errors import BadInputError
from proctor.formats.logs import reading
from proctor.formats.logs.reading import LOG_FORMATS, read_answers, read_log
from proctor.formats.meter import Limits
from tests.installed_plugins import Plugins

SCORES: Final = """
from proctor.domain.run_log import AskedWith, LoggedAnswer, RunLog
from proctor.formats.logs.checks import Grades, Ids, refuse
from proctor.formats.logs.log_format import LogFormat


def fits(log):
    return log.text.startswith("#scores") or log.text.startswith("item,points")


def read(log):
    ids, grades = Ids(log.source), Grades(log.source)
    answers = []
    for number, line in enumerate(log.text.splitlines()[1:], 2):
        if line.count(",") != 1:
            refuse(log.source, number, "write an item, a comma and its points")
        item, points = line.split(",")
        answers.append(LoggedAnswer(ids.read(item, number, "item"), grades.read(points, number, "points"), number))
    return [RunLog(log.source, "scores", "as logged", tuple(answers))]


SCORES = LogFormat(fits, read)


def given(log):
    return eval(log.text.partition("!")[2], {"AskedWith": AskedWith, "LoggedAnswer": LoggedAnswer, "RunLog": RunLog})


GIVEN = LogFormat(lambda log: log.text.startswith("given!"), given)
BROKEN = LogFormat(lambda log: 1 / 0, read)
"""


def installed(plugins: Plugins, *names: str) -> Path:
    points = {name: f"toy_scores:{name.upper()}" for name in names}
    return plugins.install({"toy_scores": SCORES}, {"proctor.formats": points})


def written(tmp_path: Path, text: str, name: str = "log.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("head", ["#scores", "item,points"])
def test_what_proctor_does_not_know_is_read_by_the_plug_in_that_does(
    head: str, plugins: Plugins, tmp_path: Path
) -> None:
    log = written(tmp_path, f"{head}\na,1\nb,0\n")
    with pytest.raises(BadInputError, match=r"begins with|no column id"):
        read_log(log)
    installed(plugins, "scores")
    (run,) = read_log(log)
    assert [(answer.item_id, answer.correct, answer.line) for answer in run.answers] == [
        ("a", True, 2),
        ("b", False, 3),
    ]
    assert (run.source, run.format) == (str(log), "scores of toy 1.2")


def test_a_fault_that_the_plug_in_finds_is_told_with_its_line(plugins: Plugins, tmp_path: Path) -> None:
    installed(plugins, "scores")
    with pytest.raises(BadInputError, match=r"log\.txt:3: write an item, a comma and its points"):
        read_log(written(tmp_path, "#scores\na,1\nb\n"))


def test_proctors_own_formats_are_not_shown_to_plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(group: str) -> None:
        raise AssertionError(f"{group} was looked for")

    monkeypatch.setattr("proctor.domain.plugins.declared", refused)
    assert read_log(written(tmp_path, "id,correct\na,1\n"))[0].format == "csv"
    with pytest.raises(BadInputError, match="correct is 'x'"):
        read_log(written(tmp_path, "id,correct\na,x\n"))
    assert LOG_FORMATS.built_in == ("lighteval", "inspect", "csv", "lm_eval", "eval_trust", "proctor")


def test_what_no_plug_in_knows_is_refused_as_without_any(plugins: Plugins, tmp_path: Path) -> None:
    logs = {name: written(tmp_path, text, name) for name, text in {"a": "what?", "b": "x,y\n1,2\n", "c": "[]"}.items()}

    def refusals() -> list[str]:
        said = []
        for log in logs.values():
            with pytest.raises(BadInputError) as refused:
                read_log(log)
            said.append(str(refused.value))
        return said

    without = refusals()
    installed(plugins, "scores")
    assert refusals() == without


def test_a_plug_in_that_fails_is_named_and_keeps_no_other_from_its_logs(plugins: Plugins, tmp_path: Path) -> None:
    installed(plugins, "broken", "scores")
    assert len(read_log(written(tmp_path, "#scores\na,1\n"))) == 1
    with pytest.raises(BadInputError, match=r"the log format 'broken' of toy 1\.2 failed: ZeroDivisionError"):
        read_log(written(tmp_path, "what?"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[]", "found no run with an answer in it"),
        ("[RunLog('s', 'f', 'e', ())]", "found no run with an answer in it"),
        ("7", "failed: TypeError"),
        ("[RunLog('s', 'f', 'e', (7,))]", "that is 7, and no LoggedAnswer"),
        ("[RunLog('s', 'f', 'e', (LoggedAnswer('a', 'yes', 3),))]", ":3: .* whose correct is 'yes'"),
        ("[RunLog('s', 'f', 'e', (LoggedAnswer('a', True, 1), LoggedAnswer('a', True, 2)))]", "stands twice"),
        ("[RunLog('s', 'f', 'e', (LoggedAnswer('a', True, 1, text=b'x'),))]", "whose text is no text"),
        ("[RunLog('s', 'f', 'e', (LoggedAnswer('a', True, 1, tokens=-1),))]", "with -1 tokens"),
        (
            "[RunLog('s', 'f', 'e', tuple(LoggedAnswer(str(n), True, n) for n in range(11)))]",
            "found 11 answers; at most 10 are read",
        ),
        ("[RunLog('s', 'f', 'e', (LoggedAnswer('a', True, 1, samples=('x' * 3_000_000,)),))]", "more than 2 MiB"),
    ],
)
def test_what_a_plug_in_reads_is_held_to_what_proctors_own_readers_are(
    given: str, said: str, plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LOG_ROWS", Limits(rows=10, total_bytes=2 << 20))
    installed(plugins, "given")
    with pytest.raises(BadInputError, match=said):
        read_log(written(tmp_path, f"given!{given}"))


def test_the_commands_read_a_plug_ins_log_and_say_whose_format_it_is(plugins: Plugins, tmp_path: Path) -> None:
    folder = installed(plugins, "scores")
    rows = {k: "".join(f"q{n},{n % k == 0:d}\n" for n in range(40)) for k in (2, 3)}
    a, b = (written(tmp_path, f"#scores\n{text}", str(k)) for k, text in rows.items())
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "proctor", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    compared = json.loads(run("compare", a, b, "--format", "json"))
    assert (compared["n"], compared["formats"]) == (40, {"a": "scores of toy 1.2", "b": "scores of toy 1.2"})
    assert f"A: {a} (scores of toy 1.2)" in run("truncation", a)


@pytest.mark.parametrize("command", ["compare", "truncation"])
def test_the_help_of_commands_that_read_logs_lists_the_formats_that_are_installed(
    command: str, plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    def formats() -> str:
        assert main([command, "--help"]) == 0
        return " ".join(capsys.readouterr().out.partition("Log formats:")[2].split())

    more = "; plug-ins add more (entry points proctor.formats)"
    assert formats() == f"lighteval, inspect, csv, lm_eval, eval_trust, proctor{more}"
    installed(plugins, "scores", "broken")
    assert (
        formats()
        == f"lighteval, inspect, csv, lm_eval, eval_trust, proctor, broken (of toy 1.2), scores (of toy 1.2){more}"
    )


def test_what_a_plugins_log_says_was_sent_can_be_held_against_a_suite(plugins: Plugins, tmp_path: Path) -> None:
    installed(plugins, "given")
    asked = "asked_with=(AskedWith(1, {'temperature': 0.0}),), model='m'"
    text = f"given![RunLog('x', 'y', 'z', (LoggedAnswer('a', None, 1, text='A', prompt='Q', trial='t'),), {asked})]"
    run = read_answers(written(tmp_path, text))
    assert [(one.prompt, one.trial, one.text) for one in run.answers] == [("Q", "t", "A")]
    assert (run.model, run.asked_with[0].values) == ("m", {"temperature": 0.0})
    assert run.card.protocol == {"decoding_policy.temperature": 0.0}


@pytest.mark.parametrize(
    ("answer", "run", "said"),
    [
        ("prompt=7", "", "prompt is no text"),
        ("input_tokens=-1", "", "-1 tokens"),
        ("", "model=7", "wrong model or asked_with"),
        ("", "asked_with=[1]", "wrong model or asked_with"),
        ("", "asked_with=(AskedWith(1, {7: 1}),)", "wrong model or asked_with"),
        ("", "asked_with=(AskedWith(1, {}),) * 9", "wrong model or asked_with"),
        ("", "card={'temperature': 0}", "card is no RecordedCard"),
    ],
)
def test_what_a_plugin_says_of_the_asking_is_held_to_its_types(
    plugins: Plugins, tmp_path: Path, answer: str, run: str, said: str
) -> None:
    installed(plugins, "given")
    text = f"given![RunLog('x', 'y', 'z', (LoggedAnswer('a', None, 1, {answer}),), {run})]"
    with pytest.raises(BadInputError, match=said):
        read_answers(written(tmp_path, text))
