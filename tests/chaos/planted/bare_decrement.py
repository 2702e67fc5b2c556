"""Planted bug: completion is a counter that every answer lowers, as dramatiq's barrier and Celery's chord do it."""

from __future__ import annotations

from typing import Any

#: As `record.lua`, with a counter (kept under `fired`) in place of set membership. KEYS and ARGV are the same.
_RECORD = """
local outcomes = {}
for i = 3, #ARGV, 5 do
  local new = redis.call('HSETNX', KEYS[6], ARGV[i], ARGV[i + 1])
  if new == 1 then
    local trials = string.match(redis.call('HGET', KEYS[3], ARGV[i]), '^%d+ (%d+)')
    redis.call('HINCRBY', KEYS[1], ARGV[2] .. ' trials', trials)
    redis.call('HINCRBY', KEYS[1], ARGV[2] .. ' input_tokens', ARGV[i + 2])
    redis.call('HINCRBY', KEYS[1], ARGV[2] .. ' output_tokens', ARGV[i + 3])
  end
  redis.call('ZREM', KEYS[5], ARGV[i])
  redis.call('ZREM', KEYS[4], ARGV[i])
  local answered = redis.call('INCR', KEYS[9])
  outcomes[#outcomes + 1] = answered == redis.call('HLEN', KEYS[3]) and 'complete' or 'recorded'
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return outcomes
"""


def plant(service: str) -> None:
    """Have the router count instead of look."""
    if service != "router":
        return
    from proctor.router.ledger.keys import keys_of
    from proctor.router.ledger.reading import LedgerReading
    from proctor.router.ledger.scripts import RECORD
    from proctor.router.ledger.store import Ledger, Standing
    from proctor.router.ledger.types import Settled

    # Before the first use of it: what Redis knows the script by is worked out from its text.
    vars(RECORD)["text"] = _RECORD
    look = Ledger.standing

    def counted_out(self: LedgerReading, audit_id: str, stage: str, n: int) -> Standing:
        standing: Standing = look(self, audit_id, stage, n)
        counter: Any = self._redis.get(keys_of(audit_id, stage)["fired"])
        planned: Any = self._redis.hlen(keys_of(audit_id, stage)["plan"])
        return standing._replace(complete=counter is not None and int(counter) >= planned > 0)

    def settled(self: LedgerReading, audit_id: str, stage: str) -> Settled:
        # Nor is it looked whether what has ended is whole.
        entries, done = self.entries(audit_id, stage), self.done(audit_id, stage)
        return Settled(tuple(entries), done, self.dead(audit_id, stage), {}, self.graded(audit_id, stage))

    Ledger.standing, Ledger.settled = counted_out, settled  # type: ignore[method-assign]
