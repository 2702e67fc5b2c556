-- An attempt at a shard failed: queue it again behind its cap of attempts, or give it up with the cause.
-- A failure of an attempt that is not the current one is stale: a newer copy is under way.
-- KEYS: plan queue leases attempts done dead fired   ARGV: ttl_s shard_id attempt retryable cap cause
-- Returns 'stale', 'queued', 'dead', or 'complete' (once).
local shard = ARGV[2]
if redis.call('HEXISTS', KEYS[5], shard) == 1 or redis.call('HEXISTS', KEYS[6], shard) == 1 then return 'stale' end
if redis.call('HGET', KEYS[4], shard) ~= ARGV[3] then return 'stale' end
if redis.call('ZREM', KEYS[3], shard) == 0 then return 'stale' end
if ARGV[4] == '1' and tonumber(ARGV[3]) < tonumber(ARGV[5]) then
  redis.call('ZADD', KEYS[2], tonumber(string.match(redis.call('HGET', KEYS[1], shard), '^%d+')), shard)
  redis.call('EXPIRE', KEYS[2], ARGV[1])
  return 'queued'
end
redis.call('HSET', KEYS[6], shard, ARGV[6])
redis.call('EXPIRE', KEYS[6], ARGV[1])
if redis.call('HLEN', KEYS[5]) + redis.call('HLEN', KEYS[6]) < redis.call('HLEN', KEYS[1]) then return 'dead' end
if redis.call('SET', KEYS[7], '1', 'NX', 'EX', ARGV[1]) then return 'complete' end
return 'dead'
