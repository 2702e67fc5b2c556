-- The servers of a pool were away: open its breaker, or lengthen its wait where the shard was to probe.
-- KEYS: breaker probes suspects   ARGV: ttl_s name first_wait_ms longest_wait_ms stretch
-- Returns whether it is a loss of the shard (1, or 0 where it was probing), and for how many ms the servers are away.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local since, wait = unpack(redis.call('HMGET', KEYS[1], 'since', 'wait'))
local counts = 1
if not since then
  since = now
  -- They are of an earlier outage.
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'since', now, 'wait', ARGV[3], 'until', now + math.floor(ARGV[3] * ARGV[5]))
elseif redis.call('SREM', KEYS[2], ARGV[2]) == 1 then
  counts = 0
  wait = math.min(tonumber(wait) * 2, tonumber(ARGV[4]))
  redis.call('HSET', KEYS[1], 'wait', wait, 'until', now + math.floor(wait * ARGV[5]))
  redis.call('HDEL', KEYS[1], 'probe')
end
redis.call('SADD', KEYS[3], ARGV[2])
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return {counts, now - tonumber(since)}
