"""Every policy, by its name: importing a module of policies enters them."""

from __future__ import annotations

from tests.charts.policies import (
    access,
    availability,
    containers,
    images,
    network,
    objects,
    pod_security,
    program,
    references,
    scaling,
    secrets,
)
from tests.charts.policies.policy import POLICIES, Policy

__all__ = ["MODULES", "POLICIES", "Policy"]

MODULES = (
    access, availability, containers, images, network, objects, pod_security, program, references, scaling, secrets,
)  # fmt: skip
