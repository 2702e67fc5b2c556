-- The servers of a pool were away: open its breaker, or lengthen its wait where the shard was to probe.
-- KEYS: breaker probes suspects   ARGV: ttl_s name first_wait_ms longest_wait_ms stretch
-- Returns whether it is a loss of the shard (1, or 0 where it was probing), and for how many ms the servers are away.
local now = now_ms()
local since, wait = unpack(redis.call('HMGET', KEYS[1], 'since', 'wait'))
local counts = 1
if not since then
  since = now
  -- They are of an earlier outage.
  write('DEL', KEYS[2])
  write('DEL', KEYS[3])
  write('HSET', KEYS[1], 'since', now, 'wait', ARGV[3], 'until', now + math.floor(ARGV[3] * ARGV[5]))
elseif redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then
  counts = 0
  wait = math.min(tonumber(wait or ARGV[3]) * 2, tonumber(ARGV[4]))
  write('SREM', KEYS[2], ARGV[2])
  write('HSET', KEYS[1], 'wait', wait, 'until', now + math.floor(wait * ARGV[5]))
  write('HDEL', KEYS[1], 'probe')
end
if tonumber(since) > now then
  -- The server's clock was put back: the outage is as old as is known by now.
  since = now
  write('HSET', KEYS[1], 'since', now)
end
write('SADD', KEYS[3], ARGV[2])
expire(KEYS, ARGV[1])
return commit({counts, now - tonumber(since)})
