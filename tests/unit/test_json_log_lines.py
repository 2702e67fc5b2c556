"""A log in JSON is one object a line whatever is said, and says of what it is; in text it stays as it was."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.runtime.logs.configuring import LogFormat
from proctor.runtime.logs.context import FIELDS, carried, said_of_now, saying
from proctor.runtime.logs.json_lines import JsonLines, shortened
from proctor.runtime.settings import Settings

#: Container runtimes part a longer line in two.
_LONGEST = 16 << 10
_HOSTILE = 'x"}\n{"level":"CRITICAL"}\r\n\x1b[2J\u202e\u2028\ud800\x00 end'


def record(message: str, *arguments: Any, exc_info: Any = None) -> logging.LogRecord:
    return logging.LogRecord("proctor.router.tasks", logging.ERROR, "f.py", 1, message, arguments, exc_info)


def line_of(one: logging.LogRecord) -> dict[str, Any]:
    text = JsonLines("router").format(one)
    assert text.isascii()
    assert len(text.splitlines()) == 1
    assert len(text) < _LONGEST
    found: dict[str, Any] = json.loads(text)
    return found


def raised(words: str) -> Any:
    try:
        raise ValueError(words)
    except ValueError:
        return sys.exc_info()


def test_a_line_says_when_what_who_and_of_which_audit_and_shard() -> None:
    with saying(audit_id="a-1", stage="answer", task=None), saying(shard_id="s7"):
        line = line_of(record("shard %s is lost", "s7"))
    assert line["time"].endswith("+00:00")
    assert line["message"] == "shard s7 is lost"
    assert (line["level"], line["logger"], line["service"]) == ("ERROR", "proctor.router.tasks", "router")
    assert (line["audit_id"], line["stage"], line["shard_id"], line["pid"]) == ("a-1", "answer", "s7", os.getpid())
    assert "task" not in line
    assert "audit_id" not in line_of(record("over"))


def test_the_pod_is_named_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "router-7d9f")
    assert line_of(record("m"))["pod"] == "router-7d9f"


@pytest.mark.parametrize("hostile", [_HOSTILE, "\n" * 5_000, "\U0001f600" * 50_000, "%s %d", "\ud800" * 9_000])
def test_a_hostile_text_is_a_part_of_one_line(hostile: str) -> None:
    with saying(audit_id=hostile, shard_id=hostile):
        line = line_of(record("%s", hostile, exc_info=raised(hostile)))
    assert line["message"].startswith(hostile[:30])
    assert line["exception"]["type"] == "ValueError"
    assert line["exception"]["message"].startswith(hostile[:30])
    assert "raise ValueError" in line["exception"]["stack"] or line["exception"]["stack"].startswith("[...]")


@given(st.text(max_size=400), st.integers(min_value=40, max_value=200))
def test_what_is_shortened_fits_and_says_so(text: str, most: int) -> None:
    for keep_end in (False, True):
        short = shortened(text, most, keep_end=keep_end)
        assert len(json.dumps(short)) <= most + 5
        assert short == text or "[...]" in short


def test_a_line_whose_arguments_do_not_fit_it_is_said_all_the_same() -> None:
    assert "arguments that do not fit it" in line_of(record("%d audits", "no number"))["message"]


def test_what_a_line_is_of_follows_into_coroutines_and_is_handed_to_threads() -> None:
    async def inner() -> tuple[str, ...]:
        with ThreadPoolExecutor(1) as threads:
            run = asyncio.get_running_loop().run_in_executor
            bare = await run(threads, lambda: dict(said_of_now()))
            handed = await run(threads, carried(lambda: dict(said_of_now())))
        return said_of_now()["shard_id"], str(bare), handed["shard_id"]

    async def several() -> tuple[tuple[str, ...], ...]:
        async def one(shard: str) -> tuple[str, ...]:
            with saying(shard_id=shard):
                return await inner()

        return tuple(await asyncio.gather(one("s1"), one("s2")))

    assert asyncio.run(several()) == (("s1", "{}", "s1"), ("s2", "{}", "s2"))
    assert said_of_now() == {}


def test_the_fields_of_a_line_are_named_on_the_page() -> None:
    from tests.support import REPOSITORY

    page = (REPOSITORY / "docs" / "tracing.md").read_text("utf-8")
    fields = {*FIELDS, *line_of(record("m")), "exception"}
    assert [name for name in sorted(fields) if f"`{name}`" not in page] == []


_PRINTS = """
import logging, sys, threading, warnings
from proctor.runtime.logs.configuring import LogFormat, configure_logging
configure_logging("router", "INFO", LogFormat(sys.argv[1]))
logging.getLogger("proctor.x").warning("a line\\nof two")
logging.getLogger("proctor.x").debug("unsaid")
print("printed"); print("to\\nstderr", file=sys.stderr)
import click; click.echo("by click", err=True)
warnings.warn("beware")
thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
raise RuntimeError("in the end")
"""


def printed(form: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", _PRINTS, form], capture_output=True, text=True, check=False)


def test_in_json_everything_that_a_process_prints_is_a_line_of_json() -> None:
    done = printed("json")
    assert done.stdout == ""
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    said = [(line["logger"], line["message"]) for line in lines]
    assert said[:5] == [
        ("proctor.x", "a line\nof two"),
        ("stdout", "printed"),
        ("stderr", "to"),
        ("stderr", "stderr"),
        ("stderr", "by click"),
    ]
    assert [line["exception"]["type"] for line in lines if "exception" in line] == ["ZeroDivisionError", "RuntimeError"]
    assert "beware" in said[5][1]
    assert done.returncode == 1


def test_in_text_a_process_prints_as_it_did() -> None:
    done = printed("text")
    assert done.stdout == "printed\n"
    first, rest = done.stderr.split("\n", 1)
    assert first.split(" ", 2)[2] == "WARNING proctor.x: a line"
    assert rest.startswith("of two\nto\nstderr\nby click\n")
    assert "Traceback" in rest


def test_another_format_is_one_clear_error() -> None:
    with pytest.raises(BadInputError, match="PROCTOR_LOG_FORMAT is 'xml', but must be text or json"):
        Settings.from_environment({"PROCTOR_LOG_FORMAT": "xml"})
    assert Settings.from_environment({}).log_format is LogFormat.TEXT
