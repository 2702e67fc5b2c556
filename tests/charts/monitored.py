"""What dashboards and alerts may ask for: the names of metrics in an expression, and those that somebody serves."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import write_dashboards
from proctor.runtime.metrics.catalogue import METRICS
from tests.support import REPOSITORY

CHART = REPOSITORY / "charts" / "proctor"
RULES = sorted((CHART / "rules").glob("*.yaml"))
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
_TEXTS = re.compile(r'"(?:\\.|[^"\\])*"')
_NAME = re.compile(r"\b(?:proctor|nv|kube|DCGM)[_:][A-Za-z0-9_:]*")


@cache
def read(path: Path) -> Any:
    """A file of YAML; to be read and not changed."""
    return YAML(typ="safe").load(path)


def rules(path: Path) -> list[dict[str, Any]]:
    """All rules of a file."""
    return [rule for group in read(path)["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    """Every alert by its name."""
    return {rule["alert"]: rule for path in RULES for rule in rules(path) if "alert" in rule}


def recorded() -> dict[str, str]:
    """The expressions of recording rules by what they record."""
    return {rule["record"]: rule["expr"] for path in RULES for rule in rules(path) if "record" in rule}


def names_in(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    return set(_NAME.findall(_TEXTS.sub('""', expression)))


def served() -> set[str]:
    """Names of the series that Proctor or a server beside it tells."""
    own = set[str]()
    for metric in METRICS:
        parts = ("_bucket", "_count", "_sum") if metric.kind == "histogram" else ("",)
        own |= {metric.name + part for part in parts}
    return own | set(write_dashboards.FOREIGN)
