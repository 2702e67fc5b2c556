"""Names of evidence channels: those that Proctor brings, and those of plug-ins, which a suite may require as well.

What a channel does is said in `proctor.scorer.channels`; a name is all that a suite, a report and a decision hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from proctor.domain.plugins import declared, handed_in

#: Group of the entry points that declare a plug-in's channels.
GROUP: Final = "proctor.channels"
#: The channels that Proctor brings, each registered by this line alone: name → its `Channel`, as an entry point has it.
BUILT_IN: Final[Mapping[str, str]] = {
    "perturbation": "proctor.scorer.channels.perturbation:CHANNEL",
    "noise": "proctor.scorer.channels.noise.channel:CHANNEL",
    "exposure": "proctor.scorer.channels.exposure:CHANNEL",
    "fresh": "proctor.scorer.channels.fresh:CHANNEL",
    "protocol": "proctor.scorer.channels.protocol:CHANNEL",
}
#: The channels that the gate's own table is made of: limits are held against the perturbation channel's intervals, and
#: an invalid protocol invalidates every comparison. They count as required whatever a suite says.
ALWAYS_REQUIRED: Final = ("perturbation", "protocol")
#: The channels that reach past the wording of the items: what a model remembers in every wording shows there alone.
BEYOND_WORDING: Final = ("exposure", "fresh")
#: Profile of a suite → the channels that it requires, whatever else the suite says; the others require none.
REQUIRED_BY_PROFILE: Final[Mapping[str, tuple[str, ...]]] = {"strict": ("fresh",)}
#: Channels that run only where a suite has a section of its own → the section's name in the suite's JSON.
ASKED_IN_SECTION: Final[Mapping[str, str]] = {"exposure": "exposure_config", "fresh": "fresh_config"}
#: The channel that needs a search of training data.
SEARCHES: Final = "exposure"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


def channel_names() -> tuple[str, ...]:
    """The names that a suite may require here: the built-in ones, then those that plug-ins declare."""
    return (*BUILT_IN, *(name for name in declared(GROUP) if name not in BUILT_IN and _NAME.fullmatch(name)))


def _known(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and value in BUILT_IN:
        return value
    # Only now, because reading the entry points of all distributions takes its time.
    if isinstance(value, str) and _NAME.fullmatch(value) and (not handed_in(info.context) or value in declared(GROUP)):
        return value
    raise PydanticCustomError("unknown_part", "is no channel", {"choices": channel_names()})


ChannelName = Annotated[str, BeforeValidator(_known)]
"""A channel's name."""
