"""Planted bug: completion is a counter that every answer lowers, as dramatiq's barrier and Celery's chord do it."""

from __future__ import annotations

from typing import Any

#: As `record.lua`, with a counter (kept under `fired`) in place of set membership. KEYS and ARGV are the same.
_RECORD = """
redis.call('HSETNX', KEYS[4], ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[2])
local answered = redis.call('INCR', KEYS[6])
redis.call('EXPIRE', KEYS[6], ARGV[1])
if answered == redis.call('HLEN', KEYS[1]) then return 'complete' end
return 'recorded'
"""


def plant(service: str) -> None:
    """Have the router count instead of look."""
    if service != "router":
        return
    from proctor.router.ledger import Ledger

    begin = Ledger.__init__

    def with_a_counter(self: Ledger, url: str) -> None:
        begin(self, url)
        self._scripts["record"] = self._redis.register_script(_RECORD)

    def counted_out(self: Ledger, audit_id: str, stage: str) -> bool:
        counter: Any = self._redis.get(self._key(audit_id, stage, "fired"))
        planned: Any = self._redis.hlen(self._key(audit_id, stage, "plan"))
        return counter is not None and int(counter) >= planned > 0

    Ledger.__init__, Ledger.is_complete = with_a_counter, counted_out  # type: ignore[method-assign]
