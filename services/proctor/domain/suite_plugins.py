"""The plug-ins that a suite names, for its protocol card: another version of one may give other results."""

from __future__ import annotations

from typing import Any, Final

from proctor.domain.backends import BACKENDS
from proctor.domain.channels import BUILT_IN
from proctor.domain.channels import GROUP as CHANNELS_GROUP
from proctor.domain.plugins import ExtensionPoint
from proctor.domain.routing import STAGES_GROUP
from proctor.domain.strategies import STRATEGIES
from proctor.domain.suite import Suite

#: What the names of backends begin with in `plugins_of`.
BACKEND: Final = "backend "
#: Say whose a channel or a stage is; what it does is known where the evidence is, and where models are asked.
_CHANNELS: Final[ExtensionPoint[Any]] = ExtensionPoint(CHANNELS_GROUP, "channel", object, {})
_STAGES: Final[ExtensionPoint[Any]] = ExtensionPoint(STAGES_GROUP, "stage", object, {})


def plugins_of(suite: Suite) -> dict[str, str]:
    """What kind of part and its name (`strategy shout`) → its distribution and version (`toy 1.2`).

    Distributions are looked through only where a name is not one of Proctor's own.
    """
    strategies = suite.perturbation.perturbation_strategy.split("+")
    channels = [name for name in suite.scoring.required_channels if name not in BUILT_IN]
    backends = [suite.model.backend, suite.perturbation.paraphraser.backend, suite.protocol.router.backend]
    used = {
        **{f"{BACKEND}{name}": BACKENDS.origin(name) for name in backends if name is not None},
        **{f"strategy {name}": STRATEGIES.origin(name) for name in strategies},
        **{f"channel {name}": _CHANNELS.origin(name) for name in channels},
        **{f"stage {name}": _STAGES.origin(name) for name in suite.protocol.stages},
    }
    return {part: str(origin) for part, origin in sorted(used.items()) if origin is not None}
