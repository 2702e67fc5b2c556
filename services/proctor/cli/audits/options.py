"""Options that commands of `proctor audit` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def priority_option(command: Command) -> Command:
    """`--priority high|normal|low`; not from the vocabulary, whose import is heavy."""
    return click.option(
        "--priority",
        type=click.Choice(["high", "normal", "low"]),
        default="normal",
        show_default=True,
        help="Whose prompts go first where audits share an endpoint. Takes no part in the score.",
    )(command)
