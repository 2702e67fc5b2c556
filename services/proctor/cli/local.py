"""The local stack around a command: the one that runs already, or one for the time the command takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proctor.cli.terminal import say
from proctor.domain.errors import StackError
from proctor.localstack.service import ServiceState
from proctor.localstack.services import own_server
from proctor.localstack.stack import LocalStack, ServiceStatus, StackSpec
from proctor.runtime.settings import IN_PROCESS_URL, LOCAL_TRITON, Settings


def settings_to_come(home: Path) -> Settings:
    """Settings of the stack that a command in this home uses: of the one that runs, or of the one that it would start.

    They are good for telling what a suite may ask, before a stack is started for it.
    """
    try:
        return LocalStack.attach(home).settings
    except StackError:
        settings = Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})
        return settings.model_copy(
            update={"endpoints": {**settings.endpoints, LOCAL_TRITON: own_server(IN_PROCESS_URL)}}
        )


@contextmanager
def stack_for(home: Path, *, spec: StackSpec, bundle: Path | None = None, reuse: bool = True) -> Iterator[LocalStack]:
    """A running stack in a home. One that is started here ends with the block; one that was running stays.

    Args:
        home: the stack's folder.
        spec: what to start, if it must be started.
        bundle: the reference bundle to serve instead of Proctor's own.
        reuse: whether a stack that `proctor up` started may be used.

    Raises:
        StackError: when it does not start.
    """
    if reuse:
        try:
            running = LocalStack.attach(home)
        except StackError:
            pass
        else:
            running.check()
            say(f"Using the stack that runs in {home}.", err=True)
            yield running
            return
    settings = Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})
    if bundle is not None:
        settings = settings.model_copy(update={"bundle": bundle.absolute()})
    say("Starting the local stack ...", err=True)
    with LocalStack(home, spec, settings) as stack:
        stack.start(_show)
        for note in stack.notes:
            say(f"note: {note}", err=True)
        yield stack
        say("Stopping the local stack ...", err=True)


def _show(service: ServiceStatus) -> None:
    if service.state is ServiceState.READY:
        say(f"  {service.name} ({service.version}) is ready after {service.ready_after_s:.1f} s", err=True)
