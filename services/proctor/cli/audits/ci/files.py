"""`--junit`, `--markdown` and `--dashboard`: what a command that waits for an audit leaves for others to show."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.cli.audits.ci.outcome import Outcome

Command = Callable[..., Any]
#: Of an address that stands in a link as it is.
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.:_~%/\[\]-]{1,1000}", re.ASCII)


class CiFiles(NamedTuple):
    """What is to be written."""

    junit: Path | None = None
    markdown: Path | None = None
    dashboard: str | None = None
    """Where the audit is to be seen, for links."""

    def __bool__(self) -> bool:
        return self.junit is not None or self.markdown is not None

    def write(self, outcome: Outcome) -> None:
        """Write the files.

        Raises:
            BadInputError: when one cannot be written.
        """
        from proctor.cli.audits.ci.junit import junit_xml
        from proctor.cli.audits.ci.markdown import markdown
        from proctor.runtime.files import write_atomic

        made = ((self.junit, junit_xml(outcome)), (self.markdown, markdown(outcome).encode()))
        for path, content in made:
            if path is None:
                continue
            try:
                write_atomic(path, content, private=False)
            except OSError as error:
                raise BadInputError(f"{path} cannot be written: {error.strerror or error}") from None


def ci_options(command: Command) -> Command:
    """Give a command its `ci`, which is a `CiFiles`."""

    @functools.wraps(command)
    def called(*args: Any, junit: Path | None, markdown: Path | None, dashboard: str | None, **options: Any) -> Any:
        if dashboard is not None and not _ADDRESS.fullmatch(dashboard):
            raise BadInputError("--dashboard is no address of a web page: write e.g. https://proctor.example.org")
        return command(*args, ci=CiFiles(junit, markdown, dashboard), **options)

    decorated: Command = called
    for option in reversed(_options()):
        decorated = option(decorated)
    return decorated


def _options() -> tuple[Callable[[Command], Command], ...]:
    file = click.Path(path_type=Path, dir_okay=False)
    return (
        click.option("--junit", type=file, callback=_in_a_folder, help="File for the outcome as JUnit test results."),
        click.option(
            "--markdown", type=file, callback=_in_a_folder, help="File for a summary in Markdown, for a pull request."
        ),
        click.option(
            "--dashboard",
            metavar="URL",
            envvar="PROCTOR_DASHBOARD_URL",
            help="Address of the dashboard, to which the summary links. [env: PROCTOR_DASHBOARD_URL]",
        ),
    )


def _in_a_folder(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    # An audit of an hour should not end with a file that has no place.
    if value is not None and not value.absolute().parent.is_dir():
        raise click.BadParameter(
            f"the folder {value.absolute().parent} is not there: make it first", context, parameter
        )
    return value
