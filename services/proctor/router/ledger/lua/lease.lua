-- Lease shards that are still queued. Time is the server's.
-- Keys: plan queue leases attempts failures losses
-- Arguments: ttl_s lease_ms
-- Rows: shard_id
-- Returns rows of shard_id, attempt, entry, failures, losses.
local ends = now_ms() + count(arg.lease_ms)
local leased, taken, seen, until_ms, attempts = {}, {}, {}, {}, {}
for i = FIRST, #ARGV do
  local shard = ARGV[i]
  if not seen[shard] and redis.call('ZSCORE', key.queue, shard) then
    seen[shard], taken[#taken + 1] = true, shard
    local entry = redis.call('HGET', key.plan, shard)
    if entry then
      local attempt = raised(redis.call('HGET', key.attempts, shard), 1)
      until_ms[#until_ms + 1] = ends
      until_ms[#until_ms + 1] = shard
      attempts[#attempts + 1] = shard
      attempts[#attempts + 1] = attempt
      local failures, losses = redis.call('HGET', key.failures, shard), redis.call('HGET', key.losses, shard)
      leased[#leased + 1] = {shard, tonumber(attempt), entry, failures or '0', losses or '0'}
    end
  end
end
write_all('ZREM', key.queue, taken)
write_all('ZADD', key.leases, until_ms)
write_all('HSET', key.attempts, attempts)
expire(KEYS, arg.ttl_s)
return commit(leased)
