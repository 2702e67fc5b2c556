"""The channels that there are, found by name: Proctor's own (`proctor.domain.channels`) and those of plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from proctor.domain.channels import BUILT_IN, GROUP
from proctor.domain.evidence import Evidence
from proctor.domain.plugins import ExtensionPoint
from proctor.domain.suite import Suite
from proctor.scorer.channels.channel import Channel

CHANNELS: Final = ExtensionPoint(GROUP, "channel", Channel, BUILT_IN)


def plugins_of(suite: Suite) -> tuple[str, ...]:
    """The channels of plug-ins that take part in an audit: those that its suite requires, each once."""
    return tuple(name for name in suite.required_channels if name not in CHANNELS.built_in)


def channels_of(suite: Suite) -> tuple[str, ...]:
    """The channels of an audit: all that Proctor brings, then those of plug-ins."""
    return (*CHANNELS.built_in, *plugins_of(suite))


def files_of(evidence: Evidence) -> Iterator[tuple[str, bytes]]:
    """The files that channels lay beside a report: name and content."""
    for name in CHANNELS.built_in:
        if (result := evidence.result_of(name)) is not None:
            yield from CHANNELS.get(name).files(result).items()
