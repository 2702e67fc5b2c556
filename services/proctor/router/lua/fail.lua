-- An attempt at a shard came to nothing: queue it again, or give it up with the cause.
-- A setback of an attempt that is not the current one is stale: a newer copy is under way.
-- KEYS: parts plan queue leases attempts failures losses done dead fired
-- ARGV: ttl_s shard_id attempt setback max_failures max_losses cause
-- Returns 'stale', 'queued', 'dead', or 'complete' (once).
local shard, setback = ARGV[2], ARGV[4]
local entry = redis.call('HGET', KEYS[2], shard)
if not entry or redis.call('HGET', KEYS[5], shard) ~= ARGV[3] then return 'stale' end
if redis.call('ZREM', KEYS[4], shard) == 0 then return 'stale' end
local position, n_trials = string.match(entry, '^(%d+) (%d+)')
local over = setback == 'final'
if setback == 'failed' then
  over = redis.call('HINCRBY', KEYS[6], shard, 1) >= tonumber(ARGV[5])
elseif setback == 'lost' then
  over = redis.call('HINCRBY', KEYS[7], shard, 1) >= tonumber(ARGV[6]) and tonumber(n_trials) == 1
end
if over then
  redis.call('HSET', KEYS[9], shard, ARGV[7])
else
  redis.call('ZADD', KEYS[3], position, shard)
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
if not over then return 'queued' end
local parts = redis.call('HMGET', KEYS[1], 'laid', 'of')
if parts[1] and parts[1] == parts[2] and redis.call('EXISTS', KEYS[3], KEYS[4]) == 0
    and redis.call('HLEN', KEYS[8]) + redis.call('HLEN', KEYS[9]) >= redis.call('HLEN', KEYS[2])
    and redis.call('SET', KEYS[10], '1', 'NX', 'EX', ARGV[1]) then
  return 'complete'
end
return 'dead'
