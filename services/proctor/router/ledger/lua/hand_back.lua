-- Queue again what was leased and not sent. An attempt that is not the current one is left alone.
-- Keys: plan queue leases attempts
-- Arguments: ttl_s
-- Rows: shard_id attempt
-- Returns the number of shards that are queued again.
local queued, given_back, seen = {}, {}, {}
for i = FIRST, #ARGV, WIDTH do
  local shard, attempt = unpack(ARGV, i, i + WIDTH - 1)
  local entry = redis.call('HGET', key.plan, shard)
  if entry and not seen[shard] and redis.call('HGET', key.attempts, shard) == attempt
      and redis.call('ZSCORE', key.leases, shard) then
    seen[shard] = true
    given_back[#given_back + 1] = shard
    queued[#queued + 1] = string.match(entry, '^%d+')
    queued[#queued + 1] = shard
  end
end
write_all('ZREM', key.leases, given_back)
write_all('ZADD', key.queue, queued)
expire({key.queue}, arg.ttl_s)
return commit(#given_back)
