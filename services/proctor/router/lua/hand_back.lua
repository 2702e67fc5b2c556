-- Queue again what was leased and not sent. An attempt that is not the current one is left alone.
-- KEYS: plan queue leases attempts   ARGV: ttl_s, then (shard_id, attempt) pairs
-- Returns the number of shards that are queued again.
local queued = 0
for i = 2, #ARGV, 2 do
  local shard = ARGV[i]
  local entry = redis.call('HGET', KEYS[1], shard)
  if entry and redis.call('HGET', KEYS[4], shard) == ARGV[i + 1] and redis.call('ZREM', KEYS[3], shard) == 1 then
    redis.call('ZADD', KEYS[2], string.match(entry, '^%d+'), shard)
    queued = queued + 1
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[1])
return queued
