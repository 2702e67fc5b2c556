"""The root of the command: quick to answer, one line an error, right exit codes."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from proctor import __version__
from proctor.cli import main as root
from proctor.domain.errors import BadInputError, StackError

SERVICES = Path(__file__).resolve().parents[2] / "services"
HEAVY = ("torch", "transformers", "mlflow", "pydantic", "celery", "sqlalchemy", "numpy", "scipy", "matplotlib")


def run_python(program: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SERVICES), "PROCTOR_HOME": str(home)}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """A command `broken` that raises or returns what the test puts into the dict."""
    behaviour: dict[str, object] = {}

    @click.command()
    def broken() -> object:
        if isinstance(error := behaviour.get("raises"), BaseException):
            raise error
        return behaviour.get("returns")

    module = type(sys)("proctor_broken_command")
    vars(module)["broken"] = broken
    monkeypatch.setitem(sys.modules, "proctor_broken_command", module)
    monkeypatch.setitem(root.COMMANDS, "broken", root.Entry("proctor_broken_command:broken", "Breaks."))
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    return behaviour


def test_help_imports_no_heavy_library(tmp_path: Path) -> None:
    program = (
        "import sys, json\nfrom proctor.cli.main import main\nassert main(['--help']) == 0\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)"
    )
    run = run_python(program, tmp_path)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stderr) == []
    for name, entry in root.COMMANDS.items():
        assert name in run.stdout
        assert entry.help.split()[0] in run.stdout


def test_help_shows_the_commands_in_groups_that_start_with_what_a_newcomer_does(tmp_path: Path) -> None:
    run = run_python("from proctor.cli.main import main; main(['--help'])", tmp_path)
    listed = run.stdout[run.stdout.index("Audits:") :].splitlines()
    headings = [line.rstrip(":") for line in listed if line and not line.startswith(" ")]
    assert headings == ["Audits", "Evidence from logs", "Exposure", "Variants", "Decisions", "Operate"]
    entries = [line for line in listed if line.startswith("  ") and not line.startswith("   ")]
    names = [line.split()[0] for line in entries]
    assert names[:3] == ["demo", "suite", "audit"]
    assert sorted(names) == sorted(root.COMMANDS)
    assert names == list(root.COMMANDS)
    columns = {line.index(root.COMMANDS[line.split()[0]].help.split()[0]) for line in entries}
    assert len(columns) == 1


def test_importing_the_package_loads_none_of_its_rooms(tmp_path: Path) -> None:
    run = run_python("import sys, proctor; print([n for n in sys.modules if n.startswith('proctor.')])", tmp_path)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(root.COMMANDS))
def test_every_command_of_the_table_is_there_and_has_help(name: str) -> None:
    module, _, attribute = root.COMMANDS[name].target.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert command.help


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert root.main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["--no-such-option"],
        ["status", "--format", "xml"],
        ["worker", "router", "--log-level", "loud"],
        ["gateway", "--log-level", "loud"],
    ],
)
def test_bad_usage_is_one_message_and_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert root.main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("proctor: error: ") == 1


@pytest.mark.parametrize("arguments", [[], ["suite"], ["audit"]], ids=["proctor", "proctor suite", "proctor audit"])
def test_a_group_alone_shows_its_help_once_and_calls_it_no_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert root.main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("Usage: ")
    assert (output.err.count("Usage: "), "error" in output.err.splitlines()[0]) == (1, False)
    assert "--help" in output.err


@pytest.mark.parametrize(("error", "code"), [(BadInputError("bad \x1b[2Jsuite"), 2), (StackError("no Valkey"), 1)])
def test_a_deliberate_error_is_one_line(
    error: Exception, code: int, command: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    command["raises"] = error
    assert root.main(["broken"]) == code
    assert capsys.readouterr().err == f"proctor: error: {str(error).replace(chr(27) + '[2J', '')}\n"


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (click.Abort(), 130), (root.Terminated(), 143)]
)
def test_an_interrupt_says_stopped(
    error: BaseException, code: int, command: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    command["raises"] = error
    assert root.main(["broken"]) == code
    assert "stopped" in capsys.readouterr().err


def test_an_unexpected_error_is_one_line_and_a_file(
    command: dict[str, object], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command["raises"] = ValueError("first\nsecond \x1b]0;title\x07line")
    assert root.main(["broken"]) == 1
    (crash,) = (tmp_path / "home" / "logs").glob("crash-*.log")
    message = capsys.readouterr().err
    assert message == f"proctor: error: unexpected ValueError: first second line; the traceback is in {crash}\n"
    assert "Traceback" in crash.read_text()


def test_the_traceback_is_shown_when_asked_for(
    command: dict[str, object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROCTOR_TRACEBACK", "1")
    command["raises"] = ValueError("why")
    assert root.main(["broken"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(("value", "code"), [(None, 0), (3, 3), (4, 4)])
def test_a_command_may_return_its_exit_code(value: object, code: int, command: dict[str, object]) -> None:
    command["returns"] = value
    assert root.main(["broken"]) == code


def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path) -> None:
    program = "from proctor.cli.main import main; raise SystemExit(main(['--help']))"
    environment = {**os.environ, "PYTHONPATH": str(SERVICES), "PROCTOR_HOME": str(tmp_path)}
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-u", "-c", program], env=environment, stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert run.stderr == ""
    assert list(tmp_path.iterdir()) == []
