-- Take queued shards while fewer than `window` are leased. Time is the server's: workers' clocks may differ.
-- KEYS: plan queue leases attempts   ARGV: ttl_s window lease_ms
-- Returns a flat list of shard_id, attempt, entry.
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local free = tonumber(ARGV[2]) - redis.call('ZCARD', KEYS[3])
local taken = {}
if free <= 0 then return taken end
local popped = redis.call('ZPOPMIN', KEYS[2], free)
for i = 1, #popped, 2 do
  local shard = popped[i]
  redis.call('ZADD', KEYS[3], now_ms + tonumber(ARGV[3]), shard)
  local attempt = redis.call('HINCRBY', KEYS[4], shard, 1)
  taken[#taken + 1] = shard
  taken[#taken + 1] = attempt
  taken[#taken + 1] = redis.call('HGET', KEYS[1], shard)
end
redis.call('EXPIRE', KEYS[3], ARGV[1])
redis.call('EXPIRE', KEYS[4], ARGV[1])
return taken
