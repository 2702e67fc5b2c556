"""Planted bug: nobody looks for what was lost."""

from __future__ import annotations


def plant(service: str) -> None:
    """Have the router's periodic task do nothing."""
    if service == "router":
        from proctor.router import reconcile
        from proctor.runtime.redis.presence import Presence

        reconcile.reconcile_audit = lambda dispatcher, record: None
        Presence.lost = lambda self: []  # type: ignore[method-assign]
