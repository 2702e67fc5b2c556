"""The designs that are compared: when each looks, how it spends its error, and when it gives up."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from proctor.domain.suite_design import DesignSection

#: The suite's default of a sequential design, and the one that asks everything.
DEFAULT, FIXED = "pocock", "fixed"
#: Suites can have these; by name, in the order of the tables.
DESIGNS: Final = MappingProxyType(
    {
        FIXED: DesignSection(),
        DEFAULT: DesignSection(kind="sequential"),
        "pocock, futility 0": DesignSection(kind="sequential", futility=0.0),
        "pocock, futility 0.1": DesignSection(kind="sequential", futility=0.1),
        "pocock, futility 0.2": DesignSection(kind="sequential", futility=0.2),
        "pocock, 2 looks": DesignSection(kind="sequential", looks=(0.5, 1.0)),
        "pocock, 4 looks": DesignSection(kind="sequential", looks=(0.25, 0.5, 0.75, 1.0)),
        "pocock, 5 looks": DesignSection(kind="sequential", looks=(0.2, 0.4, 0.6, 0.8, 1.0)),
        "pocock, 10 looks": DesignSection(kind="sequential", looks=tuple(k / 10 for k in range(1, 11))),
        "pocock, 20 looks": DesignSection(kind="sequential", looks=tuple(k / 20 for k in range(1, 21))),
        "obrien_fleming": DesignSection(kind="sequential", spending="obrien_fleming"),
        "obrien_fleming, futility 0": DesignSection(kind="sequential", spending="obrien_fleming", futility=0.0),
        "obrien_fleming, futility 0.2": DesignSection(kind="sequential", spending="obrien_fleming", futility=0.2),
    }
)
#: Of these false approvals are claimed, too: those that the page on the design recommends.
PROMISED: Final = (DEFAULT, "obrien_fleming")
#: Beside them, for comparison alone: the number of items that a confidence sequence's bets are tuned to is the sample's
#: or none, and optstop's number is the width of D's 95 % credible interval at which it stops.
BETTING: Final = MappingProxyType({"betting": False, "betting, tuned": True})
OPTSTOP: Final = MappingProxyType({"optstop 0.05": 0.05, "optstop 0.10": 0.10})
