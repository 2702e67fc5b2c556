-- Record a shard's result: the first write wins, and a shard that was given up stays given up, so that answered
-- and dead shards are disjoint. Completion is set membership, never a counter that a duplicate could move.
-- KEYS: plan queue leases done dead fired   ARGV: ttl_s shard_id result_digest
-- Returns 'unknown', 'duplicate', 'recorded', or 'complete' (once).
local shard = ARGV[2]
if redis.call('HEXISTS', KEYS[1], shard) == 0 then return 'unknown' end
if redis.call('HEXISTS', KEYS[5], shard) == 1 then return 'duplicate' end
if redis.call('HSETNX', KEYS[4], shard, ARGV[3]) == 0 then return 'duplicate' end
redis.call('EXPIRE', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[3], shard)
redis.call('ZREM', KEYS[2], shard)
if redis.call('HLEN', KEYS[4]) + redis.call('HLEN', KEYS[5]) < redis.call('HLEN', KEYS[1]) then return 'recorded' end
if redis.call('SET', KEYS[6], '1', 'NX', 'EX', ARGV[1]) then return 'complete' end
return 'recorded'
