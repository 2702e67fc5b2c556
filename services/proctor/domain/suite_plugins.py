"""The plug-ins that a suite names, for its protocol card: another version of one may give other results."""

from __future__ import annotations

from typing import Any, Final

from proctor.domain.backends import BACKENDS
from proctor.domain.channels import BUILT_IN
from proctor.domain.channels import GROUP as CHANNELS_GROUP
from proctor.domain.errors import PluginError
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
    named = _named(suite)
    origins = {part: named[part].origin(part.partition(" ")[2]) for part in sorted(named)}
    return {part: str(origin) for part, origin in origins.items() if origin is not None}


def hold_installed(suite: Suite) -> None:
    """Refuse a suite that names a part which is not here; nothing is loaded.

    Raises:
        PluginError: with every part that no distribution here brings.
    """
    absent = [part for part, point in sorted(_named(suite).items()) if part.partition(" ")[2] not in point]
    if absent:
        what, plugins = ("is", "its plug-in") if len(absent) == 1 else ("are", "their plug-ins")
        raise PluginError(
            f"the suite names the {', the '.join(absent)}, which {what} not installed here", f"install {plugins}"
        )


def _named(suite: Suite) -> dict[str, ExtensionPoint[Any]]:
    """What kind of part and its name → where it is to be found."""
    strategies = suite.perturbation.perturbation_strategy.split("+")
    channels = [name for name in suite.required_channels if name not in BUILT_IN]
    backends = [suite.model.backend, suite.perturbation.paraphraser.backend, suite.protocol.router.backend]
    return {
        **{f"{BACKEND}{name}": BACKENDS for name in backends if name is not None},
        **{f"strategy {name}": STRATEGIES for name in strategies},
        **{f"channel {name}": _CHANNELS for name in channels},
        **{f"stage {name}": _STAGES for name in suite.protocol.stages},
    }
