-- Lease shards that are still queued. Time is the server's.
-- KEYS: plan queue leases attempts failures losses   ARGV: ttl_s lease_ms, then shard ids
-- Returns rows of shard_id, attempt, entry, failures, losses.
local ends = now_ms() + count(ARGV[2])
local leased, taken, seen, until_ms, attempts = {}, {}, {}, {}, {}
for i = 3, #ARGV do
  local shard = ARGV[i]
  if not seen[shard] and redis.call('ZSCORE', KEYS[2], shard) then
    seen[shard], taken[#taken + 1] = true, shard
    local entry = redis.call('HGET', KEYS[1], shard)
    if entry then
      local attempt = raised(redis.call('HGET', KEYS[4], shard), 1)
      until_ms[#until_ms + 1] = ends
      until_ms[#until_ms + 1] = shard
      attempts[#attempts + 1] = shard
      attempts[#attempts + 1] = attempt
      local failures, losses = redis.call('HGET', KEYS[5], shard), redis.call('HGET', KEYS[6], shard)
      leased[#leased + 1] = {shard, tonumber(attempt), entry, failures or '0', losses or '0'}
    end
  end
end
write_all('ZREM', KEYS[2], taken)
write_all('ZADD', KEYS[3], until_ms)
write_all('HSET', KEYS[4], attempts)
expire(KEYS, ARGV[1])
return commit(leased)
