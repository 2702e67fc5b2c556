-- The servers of a pool were away: open its breaker, or lengthen its wait where the shard was to probe.
-- Keys: breaker probes suspects
-- Arguments: ttl_s name first_wait_ms longest_wait_ms stretch
-- Parts: breaker
-- Returns whether it is a loss of the shard (1, or 0 where it was probing), and for how many ms the servers are away.
local now = now_ms()
local breaker, counts = look_at_breaker(), 1
local since = breaker and breaker.since or now
if not breaker then
  open_breaker(now, arg.first_wait_ms, arg.stretch)
elseif has_probed(arg.name) then
  counts = 0
  probed_in_vain(now, arg.name, breaker.wait or tonumber(arg.first_wait_ms), tonumber(arg.longest_wait_ms), arg.stretch)
end
if since > now then
  -- The server's clock was put back: the outage is as old as is known by now.
  since = now
  write('HSET', key.breaker, 'since', now)
end
write('SADD', key.suspects, arg.name)
expire(KEYS, arg.ttl_s)
return commit({counts, now - since})
