-- Lease shards that are still queued. Time is the server's: workers' clocks may differ.
-- KEYS: plan queue leases attempts failures losses   ARGV: ttl_s lease_ms, then shard ids
-- Returns rows of shard_id, attempt, entry, failures, losses.
local now = redis.call('TIME')
local ends = now[1] * 1000 + math.floor(now[2] / 1000) + tonumber(ARGV[2])
local leased = {}
for i = 3, #ARGV do
  local shard = ARGV[i]
  if redis.call('ZREM', KEYS[2], shard) == 1 then
    local entry = redis.call('HGET', KEYS[1], shard)
    if entry then
      redis.call('ZADD', KEYS[3], ends, shard)
      local attempt = redis.call('HINCRBY', KEYS[4], shard, 1)
      local failures, losses = redis.call('HGET', KEYS[5], shard), redis.call('HGET', KEYS[6], shard)
      leased[#leased + 1] = {shard, attempt, entry, failures or '0', losses or '0'}
    end
  end
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return leased
