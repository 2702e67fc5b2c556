-- Put smaller shards in the place of one that is leased, unless that attempt is over. A late answer to the whole then
-- finds no such shard, and its trials are counted in the parts.
-- Keys: parts plan queue leases attempts failures losses done dead
-- Arguments: ttl_s shard_id attempt child_losses
-- Rows: shard_id entry
-- An entry begins with the shard's position.
-- Returns 1 when it was split, 0 when the shard is not leased in that attempt any more.
local shard = arg.shard_id
if redis.call('HGET', key.attempts, shard) ~= arg.attempt then return 0 end
if not redis.call('ZSCORE', key.leases, shard) then return 0 end
local entries, queued, losses = {}, {}, {}
for i = FIRST, #ARGV, WIDTH do
  local child, entry = unpack(ARGV, i, i + WIDTH - 1)
  entries[#entries + 1] = child
  entries[#entries + 1] = entry
  if redis.call('HEXISTS', key.done, child) == 0 and redis.call('HEXISTS', key.dead, child) == 0 then
    queued[#queued + 1] = string.match(entry, '^%d+')
    queued[#queued + 1] = child
    losses[#losses + 1] = child
    losses[#losses + 1] = arg.child_losses
  end
end
write('ZREM', key.leases, shard)
write('HDEL', key.plan, shard)
for _, counted in ipairs({key.attempts, key.failures, key.losses}) do write('HDEL', counted, shard) end
write_all('HSET', key.plan, entries)
write_all('ZADD', key.queue, queued)
write_all('HSET', key.losses, losses)
expire(KEYS, arg.ttl_s)
return commit(1)
