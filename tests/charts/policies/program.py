"""What the chart says to Proctor, Proctor understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from proctor.domain.messages import NOTIFIER, SERVICES
from tests.charts import program
from tests.charts.environment import variables
from tests.charts.manifests import Container, pods, strings, title
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

#: Images of ours, whose variables are Proctor's; the others are programs of their own.
OURS: Final = frozenset({*SERVICES, NOTIFIER, "gateway", "migrate", "test"})
_EXPANDED: Final = re.compile(r"\$\([A-Za-z0-9_]+\)|\$\{?\w+\}?")


@policy
def a_variable_is_one_that_is_read(release: Release) -> Iterator[str]:
    """Every variable of a container of Proctor's is one that its settings, its commands or a library of it read."""
    for container in _ours(release):
        for name in variables(release, container):
            if name not in program.variables() and not _expanded_elsewhere(release, container, name):
                yield f"{container.name}: nothing reads {name}"


@policy
def an_argument_is_one_that_is_taken(release: Release) -> Iterator[str]:
    """Every command line of a container of Proctor's is one that `proctor` takes."""
    for container in _ours(release):
        for arguments in command_lines(container):
            if refused := program.refusal(arguments):
                yield f"{container.name}: proctor {shlex.join(arguments)}: {refused}"


@policy
def a_worker_is_of_its_service(release: Release) -> Iterator[str]:
    """A workload runs the service whose component it is."""
    for container in _ours(release):
        if not container.long_running or container.starts_before:
            continue
        lines = list(command_lines(container))
        component = container.pod.component
        first = ["gateway"] if component == "gateway" else ["worker", component]
        if [line[: len(first)] for line in lines] != [first]:
            yield f"{container.name}: runs {lines} and is of {component}"


@policy
def a_metric_is_one_that_is_served(release: Release) -> Iterator[str]:
    """Every metric of Proctor's that an object names is one that the code has."""
    known = program.metrics() | _recorded(release)
    for one in release.objects:
        for name in sorted({found for text in strings(one) for found in program.metrics_in(text)} - known):
            yield f"{title(one)}: nothing serves {name}"


@policy
def a_queue_is_one_that_is_consumed(release: Release) -> Iterator[str]:
    """Every list that a scaler looks at is a queue that a worker of the release consumes."""
    for one in release.of_kind("ScaledObject", "ScaledJob"):
        for trigger in one["spec"].get("triggers") or ():
            name = trigger["metadata"].get("listName")
            if name is not None and name not in program.queues():
                yield f"{title(one)}: no worker consumes {name}"


def command_lines(container: Container) -> Iterator[list[str]]:
    """The arguments of each `proctor` that a container runs: by the image's entrypoint, or in a script."""
    command, arguments = container.spec.get("command") or [], container.spec.get("args") or []
    said = [_EXPANDED.sub("1", one) for one in (*command, *arguments)]
    if not command:
        yield said
    elif command[0].rpartition("/")[2] == "proctor":
        yield said[1:]
    else:
        for text in said:
            # Lines that go on are one line.
            for line in text.replace("\\\n", " ").splitlines():
                yield from _in_a_script(line)


def _in_a_script(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        # A text over several lines: its lines are no commands.
        return
    for place, word in enumerate(words):
        before = words[place - 1] if place else ";"
        if word == "proctor" and (set(before) <= set(";|&()!") or before in ("if", "then", "do", "exec")):
            rest = words[place + 1 :]
            ends = [at for at, one in enumerate(rest) if set(one) <= set(";|&()<>")]
            yield rest[: ends[0]] if ends else rest


def _recorded(release: Release) -> set[str]:
    """Names that rules of the release record."""
    return {
        rule["record"]
        for one in release.of_kind("PrometheusRule")
        for group in one["spec"].get("groups") or ()
        for rule in group.get("rules") or ()
        if "record" in rule
    }


def _ours(release: Release) -> Iterator[Container]:
    for pod in pods(release.objects):
        if pod.component in OURS:
            yield from pod.containers


def _expanded_elsewhere(release: Release, container: Container, name: str) -> bool:
    """A variable that stands only in others', as a URL's password does, or in the container's own script."""
    told = [value for value in variables(release, container).values() if isinstance(value, str)]
    used = re.compile(rf"\$[({{]?{name}\b|[\"']{name}[\"']")
    return any(used.search(text) for text in (*told, *container.command, *_scripts(release, container)))


def _scripts(release: Release, container: Container) -> Iterator[str]:
    for volume in container.pod.volumes:
        held = release.find("ConfigMap", str((volume.get("configMap") or {}).get("name")))
        yield from strings((held or {}).get("data"))
