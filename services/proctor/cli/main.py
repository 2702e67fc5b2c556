"""The root of the `proctor` command: finds a command's module when it is asked for, and turns errors into one line."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import click

from proctor import __version__
from proctor.cli.options import Invocation
from proctor.cli.terminal import clean, say
from proctor.domain.errors import ExitCode, ProctorError
from proctor.runtime.garbage import collect_seldom

#: What a shell expects of a command ended by SIGINT or SIGTERM: 128 and the signal's number.
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


class Entry(NamedTuple):
    """A command: the attribute that holds it, and its line in `proctor --help`."""

    target: str
    help: str


#: The commands under the headings of `proctor --help`, both in the order in which a newcomer needs them.
GROUPS: dict[str, dict[str, Entry]] = {
    "Audits": {
        "demo": Entry("proctor.cli.demo:demo", "Audit two reference models, one of them contaminated, end to end."),
        "suite": Entry("proctor.cli.suite:suite", "Write, check and fingerprint audit suites."),
        "audit": Entry("proctor.cli.audits.audit:audit", "Audit a model by a suite."),
        "gate": Entry("proctor.cli.gate:gate", "Say whether a registered version may be promoted."),
    },
    "Evidence from logs": {
        "compare": Entry(
            "proctor.cli.logs.compare:compare", "Compare two logs item by item: what is a difference worth?"
        ),
        "truncation": Entry(
            "proctor.cli.logs.truncation:truncation", "Say whether answers were cut; sort the wrong ones."
        ),
        "noise": Entry(
            "proctor.cli.logs.noise:noise", "Say whether noisy routers raise scores above the clean baseline."
        ),
        "power": Entry(
            "proctor.cli.logs.power:power", "Say what comparing two runs can find, or how many items it takes."
        ),
    },
    "Exposure": {
        "exposure": Entry("proctor.cli.exposure:exposure", "Search training data for a benchmark's items."),
        "dataset": Entry(
            "proctor.cli.dataset:dataset", "Make and rotate evaluations of your own; what is known of public ones."
        ),
    },
    "Variants": {
        "variants": Entry("proctor.cli.variants.group:variants", "Build, read and exchange the rewordings of a suite."),
    },
    "Decisions": {
        "review": Entry("proctor.cli.review:review", "See what waits for a person, and sign it off."),
        "record": Entry("proctor.cli.record:record", "Verify, show and export the log of decisions."),
        "trends": Entry("proctor.cli.trends:trends", "Show the score over a model's versions, and where it changed."),
        "baseline": Entry("proctor.cli.baseline:baseline", "Audit what is in production, as the model's floor."),
        "benchmarks": Entry("proctor.cli.benchmarks:benchmarks", "Say which items every model seems to know."),
        "costs": Entry("proctor.cli.costs:costs", "Say what a month's audits cost."),
    },
    "Operate": {
        "doctor": Entry("proctor.cli.doctor:doctor", "Say what this machine has and lacks, and the mend for each."),
        "up": Entry("proctor.cli.stack:up", "Start the local stack and keep it running."),
        "status": Entry("proctor.cli.stack:status", "Show the local stack."),
        "down": Entry("proctor.cli.stack:down", "End the local stack."),
        "gateway": Entry(
            "proctor.cli.gateway:gateway", "Serve audits over gRPC and HTTP: submit, watch and steer them."
        ),
        "triggers": Entry("proctor.cli.triggers:triggers", "Check which suites are run on what is registered."),
        "notify": Entry("proctor.cli.notify:notify", "Say who was told of decisions, and try where to."),
        "perturbation": Entry("proctor.cli.perturbation:perturbation", "Serve rewordings over gRPC."),
        "worker": Entry("proctor.cli.worker:worker", "Run the worker of one service."),
        "records": Entry("proctor.cli.records:records", "Migrate the record store, and say its version."),
        "artifacts": Entry("proctor.cli.artifacts:artifacts", "Remove old prompts and completions."),
    },
}
COMMANDS: dict[str, Entry] = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class Terminated(KeyboardInterrupt):
    """SIGTERM: unwinds like Ctrl-C, so that what was started is ended."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the groups."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when the table does not have it."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups in `--help`, from the table alone."""
        width = max(map(len, COMMANDS))
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                # Names of one width: the lines of all groups begin in one column.
                formatter.write_dl([(name.ljust(width), entry.help) for name, entry in group.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="proctor")
def cli() -> None:
    """Audit an LLM's benchmark scores for contamination, and gate its promotion on the evidence.

    Exit codes: 0 approved or done, 1 failure, 2 bad input, 3 review, 4 blocked.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. A command may return an ExitCode; nothing means 0."""
    if arguments is None:
        # The process is the command's own.
        collect_seldom()
    invocation = Invocation(Path(os.environ.get("PROCTOR_HOME") or ".proctor").absolute())
    signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        value = cli.main(
            args=list(arguments) if arguments is not None else None,
            prog_name="proctor",
            standalone_mode=False,
            obj=invocation,
        )
        return int(value) if isinstance(value, int) else ExitCode.APPROVED_OR_DONE
    except ProctorError as error:
        say(f"proctor: error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        return _show_usage_error(error)
    except (click.Abort, KeyboardInterrupt) as stop:
        say("stopped", err=True)
        return TERMINATED if isinstance(stop, Terminated) or isinstance(stop.__cause__, Terminated) else INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output (`head`) has gone. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILURE
    except Exception as error:
        return _show_crash(error, invocation.home)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _show_usage_error(error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None and error.format_message() == context.get_help():
        # A group without a command. Not every click that is taken has a class of its own for it.
        say(error.format_message(), err=True)
        return ExitCode.BAD_INPUT
    buffer = io.StringIO()
    if context is not None:
        buffer.write(context.get_usage() + "\n")
    buffer.write(f"proctor: error: {error.format_message()}")
    say(buffer.getvalue(), err=True)
    return ExitCode.BAD_INPUT if isinstance(error, click.UsageError) else error.exit_code


def _show_crash(error: Exception, home: Path) -> int:
    if os.environ.get("PROCTOR_TRACEBACK") == "1":
        say("".join(traceback.format_exception(error)), err=True)
        return ExitCode.FAILURE
    summary = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    # Loaded when it is needed: `proctor --help` is not to wait for it.
    from proctor.localstack.log_files import write_crash
    from proctor.runtime.private import tighten

    try:
        tighten(home)
        where = f"the traceback is in {write_crash(home, ''.join(traceback.format_exception(error)))}"
    except OSError as failure:
        where = f"set PROCTOR_TRACEBACK=1 to see the traceback, which could not be written ({clean(failure)})"
    say(f"proctor: error: unexpected {summary}; {where}", err=True)
    return ExitCode.FAILURE
