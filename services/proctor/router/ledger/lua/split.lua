-- Put smaller shards in the place of one that is leased, unless that attempt is over. A late answer to the whole then
-- finds no such shard, and its trials are counted in the parts.
-- KEYS: parts plan queue leases attempts failures losses done dead
-- ARGV: ttl_s shard_id attempt losses_of_a_child, then (shard_id, entry) pairs; an entry begins with its position
-- Returns 1 when it was split, 0 when the shard is not leased in that attempt any more.
local shard = ARGV[2]
if redis.call('HGET', KEYS[5], shard) ~= ARGV[3] or not redis.call('ZSCORE', KEYS[4], shard) then return 0 end
local entries, queued, losses = {}, {}, {}
for i = 5, #ARGV, 2 do
  local child, entry = ARGV[i], ARGV[i + 1]
  entries[#entries + 1] = child
  entries[#entries + 1] = entry
  if redis.call('HEXISTS', KEYS[8], child) == 0 and redis.call('HEXISTS', KEYS[9], child) == 0 then
    queued[#queued + 1] = string.match(entry, '^%d+')
    queued[#queued + 1] = child
    losses[#losses + 1] = child
    losses[#losses + 1] = ARGV[4]
  end
end
write('ZREM', KEYS[4], shard)
write('HDEL', KEYS[2], shard)
for i = 5, 7 do write('HDEL', KEYS[i], shard) end
write_all('HSET', KEYS[2], entries)
write_all('ZADD', KEYS[3], queued)
write_all('HSET', KEYS[7], losses)
expire(KEYS, ARGV[1])
return commit(1)
