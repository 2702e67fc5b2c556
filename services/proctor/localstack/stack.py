"""The local stack: Valkey, MLflow, Triton and the workers on this machine, started and ended as one."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from proctor.domain.errors import StackError
from proctor.domain.host import LOOPBACK
from proctor.localstack.service import Plan, ServiceState
from proctor.localstack.services import StackSpec, local_services
from proctor.localstack.state import ServiceStatus, end_leftovers, live_state, locked, read_state, with_log
from proctor.localstack.supervised import Progress, Supervised
from proctor.runtime.grpc.own_servers import GATEWAY
from proctor.runtime.private import make_folder, tighten_stores
from proctor.runtime.settings import Settings

__all__ = ["LocalStack", "ServiceStatus", "StackSpec"]


class LocalStack:
    """A stack in a home folder.

    Attached (`with LocalStack(home) as stack: settings = stack.start()`): it ends with the block, and with this
    process, however that dies. After `detach()` it lives on until `stop()`, from any process that `attach`es to it.
    """

    def __init__(self, home: Path, spec: StackSpec | None = None, settings: Settings | None = None) -> None:
        """A stack that does not run yet.

        Args:
            home: folder of everything the stack keeps; made when missing.
            spec: which services; all by default.
            settings: what the stack's own settings are laid over; the environment's by default.
        """
        self.home = home.absolute()
        self._spec = spec or StackSpec()
        self._base = settings
        self._settings: Settings | None = None
        self._supervised: Supervised | None = None
        self.notes: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._supervised is not None and self._supervised.attached:
            self.stop()

    @property
    def settings(self) -> Settings:
        """Settings that reach this stack.

        Raises:
            StackError: it was neither started nor attached to.
        """
        if self._settings is None:
            raise StackError(f"the local stack of {self.home} is not running; start it with: proctor up")
        return self._settings

    def start(self, progress: Progress | None = None) -> Settings:
        """Start every service and wait until all are ready.

        Args:
            progress: called with a service's status whenever it changes.

        Raises:
            StackError: a stack runs in this home already, something is missing, or a service failed; with the tail
                of that service's log. Nothing is left running then.
        """
        if not sys.platform.startswith("linux"):
            raise StackError(f"the local stack needs Linux (this is {sys.platform}); use an existing deployment")
        make_folder(self.home)
        base = self._base or Settings.from_environment({**os.environ, "PROCTOR_HOME": str(self.home)})
        tighten_stores(self.home, base.artifacts)
        with locked(self.home) as lock:
            end_leftovers(self.home)
            local = local_services(base, self._spec)
            plan = Plan(
                home=self.home,
                token=secrets.token_hex(16),
                services=local.services,
                settings=local.settings.to_environment(),
                notes=local.notes,
            )
            self._supervised = Supervised.start(plan, lock, progress)
        self._settings, self.notes = local.settings, local.notes
        return local.settings

    def detach(self) -> None:
        """Let the stack live on when this process ends."""
        if self._supervised is not None:
            self._supervised.detach()

    @classmethod
    def attach(cls, home: Path) -> LocalStack:
        """The stack that runs in a home, started by another process.

        Raises:
            StackError: when none runs there.
        """
        stack = cls(home)
        state = live_state(stack.home)
        if state is None:
            raise StackError(f"no stack runs in {stack.home}; start one with: proctor up --home {stack.home}")
        supervisor = state["supervisor"]
        stack._supervised = Supervised(stack.home, state["token"], supervisor["pid"], supervisor["started_at_ticks"])
        stack._settings, stack.notes = Settings.from_environment(state["settings"]), tuple(state["notes"])
        return stack

    def status(self) -> list[ServiceStatus]:
        """Every service as the supervisor last saw it; empty when no stack runs in this home."""
        state = live_state(self.home)
        return [ServiceStatus.from_row(row) for row in state["services"]] if state else []

    def dashboard(self) -> str | None:
        """The address of the gateway's HTTP; None where no gateway is part of the stack."""
        ports = [row.ports for row in self.status() if row.name == GATEWAY]
        return f"http://{LOOPBACK}:{ports[0]['http']}" if ports else None

    def check(self) -> None:
        """Whoever waits for work of the stack calls this now and then.

        Raises:
            StackError: a service, or the supervisor, has died; with the tail of its log.
        """
        services = self.status()
        if not services:
            raise StackError(with_log("the local stack has died", self.home / "logs" / "supervisor.log"))
        for service in services:
            if service.state is ServiceState.FAILED:
                raise StackError(with_log(f"{service.name} {service.detail}", service.log))

    def stop(self) -> None:
        """End every process of the stack; returns when none is left. Does nothing when it does not run."""
        if self._supervised is not None:
            self._supervised.stop()
        self._settings = self._supervised = None

    @staticmethod
    def end_leftovers(home: Path) -> None:
        """End what is left of a stack whose supervisor was killed. Does nothing where there is nothing.

        Raises:
            StackError: when a stack runs in this home.
        """
        if read_state(home) is not None:
            with locked(home):
                end_leftovers(home)
