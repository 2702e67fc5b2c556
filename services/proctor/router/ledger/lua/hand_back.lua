-- Queue again what was leased and not sent. An attempt that is not the current one is left alone.
-- KEYS: plan queue leases attempts   ARGV: ttl_s, then (shard_id, attempt) pairs
-- Returns the number of shards that are queued again.
local queued, given_back, seen = {}, {}, {}
for i = 2, #ARGV, 2 do
  local shard = ARGV[i]
  local entry = redis.call('HGET', KEYS[1], shard)
  if entry and not seen[shard] and redis.call('HGET', KEYS[4], shard) == ARGV[i + 1]
      and redis.call('ZSCORE', KEYS[3], shard) then
    seen[shard] = true
    given_back[#given_back + 1] = shard
    queued[#queued + 1] = string.match(entry, '^%d+')
    queued[#queued + 1] = shard
  end
end
write_all('ZREM', KEYS[3], given_back)
write_all('ZADD', KEYS[2], queued)
expire({KEYS[2]}, ARGV[1])
return commit(#given_back)
