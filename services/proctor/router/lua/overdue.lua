-- Shards whose lease has run out, each with the attempt that ran it: their message or their worker is lost.
-- KEYS: leases attempts   ARGV: (none)
-- Returns a flat list of shard_id, attempt.
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
local late = {}
for _, shard in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms)) do
  late[#late + 1] = shard
  late[#late + 1] = redis.call('HGET', KEYS[2], shard)
end
return late
