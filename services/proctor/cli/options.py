"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Invocation:
    """What the root has to know of the command that ran. `home` is where a crash is written down."""

    home: Path


def _remember(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
    invocation = context.find_object(Invocation)
    if invocation is not None:
        invocation.home = value.absolute()
    return value.absolute()


def log_level_option(command: Command) -> Command:
    """`--log-level` of a worker or server."""
    return click.option(
        "--log-level",
        type=click.Choice(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), case_sensitive=False),
        default="INFO",
        show_default=True,
        help="Level of the log on standard error.",
    )(command)


def home_option(command: Command) -> Command:
    """`--home`: the folder of a stack and everything it keeps."""
    return click.option(
        "--home",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="PROCTOR_HOME",
        default=Path(".proctor"),
        show_default=".proctor",
        callback=_remember,
        help="Folder of the stack, its logs and its data. [env: PROCTOR_HOME]",
    )(command)


def format_option(command: Command) -> Command:
    """`--format table|json`: JSON goes to standard output alone."""
    return click.option(
        "--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="Output."
    )(command)


def registry_option(command: Command) -> Command:
    """`--registry`: the model registry."""
    return click.option(
        "--registry",
        envvar="PROCTOR_REGISTRY_URI",
        help="The registry, e.g. an MLflow server's URL; by default that of the stack of --home. "
        "[env: PROCTOR_REGISTRY_URI]",
    )(command)
