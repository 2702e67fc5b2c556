"""Planted bug: nobody looks for what was lost."""

from __future__ import annotations


def plant(service: str) -> None:
    """Have the router's periodic task do nothing."""
    if service == "router":
        from proctor.router.dispatch import Dispatcher
        from proctor.runtime.redis.presence import Presence

        Dispatcher.reconcile = lambda self, audit_id: None  # type: ignore[method-assign]
        Presence.lost = lambda self: []  # type: ignore[method-assign]
