-- Put smaller shards in the place of one that is leased, unless that attempt is over. A late answer to the whole then
-- finds no such shard, and its trials are counted in the parts.
-- KEYS: parts plan queue leases attempts failures losses done dead
-- ARGV: ttl_s shard_id attempt losses_of_a_child, then (shard_id, entry) pairs; an entry begins with its position
-- Returns 1 when it was split, 0 when the shard is not leased in that attempt any more.
local shard = ARGV[2]
if redis.call('HGET', KEYS[5], shard) ~= ARGV[3] or redis.call('ZREM', KEYS[4], shard) == 0 then return 0 end
redis.call('HDEL', KEYS[2], shard)
for i = 5, 7 do redis.call('HDEL', KEYS[i], shard) end
for i = 5, #ARGV, 2 do
  local child = ARGV[i]
  redis.call('HSET', KEYS[2], child, ARGV[i + 1])
  if redis.call('HEXISTS', KEYS[8], child) == 0 and redis.call('HEXISTS', KEYS[9], child) == 0 then
    redis.call('ZADD', KEYS[3], string.match(ARGV[i + 1], '^%d+'), child)
    redis.call('HSET', KEYS[7], child, ARGV[4])
  end
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return 1
