-- An attempt at a shard came to nothing: queue it again, or give it up with the cause.
-- A setback of an attempt that is not the current one is stale: a newer copy is under way.
-- KEYS: parts plan queue leases attempts failures losses done dead fired
-- ARGV: ttl_s shard_id attempt setback max_failures max_losses cause
-- Returns 'stale', 'queued', 'dead', or 'complete' (once).
local shard, setback = ARGV[2], ARGV[4]
local entry = redis.call('HGET', KEYS[2], shard)
-- An attempt whose number was lost is attempt 0, as it is to who looks for what is overdue.
if not entry or (redis.call('HGET', KEYS[5], shard) or '0') ~= ARGV[3] then return 'stale' end
if not redis.call('ZSCORE', KEYS[4], shard) then return 'stale' end
local position, n_trials = string.match(entry, '^(%d+) (%d+)')
local over = setback == 'final'
write('ZREM', KEYS[4], shard)
if setback == 'failed' then
  local failures = raised(redis.call('HGET', KEYS[6], shard), 1)
  write('HSET', KEYS[6], shard, failures)
  over = tonumber(failures) >= tonumber(ARGV[5])
elseif setback == 'lost' then
  local losses = raised(redis.call('HGET', KEYS[7], shard), 1)
  write('HSET', KEYS[7], shard, losses)
  over = tonumber(losses) >= tonumber(ARGV[6]) and tonumber(n_trials) == 1
end
if over then
  write('HSET', KEYS[9], shard, ARGV[7])
else
  write('ZADD', KEYS[3], position, shard)
end
expire(KEYS, ARGV[1])
if not over then return commit('queued') end
local parts = redis.call('HMGET', KEYS[1], 'laid', 'of')
local left = redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4]) - 1
local settled = redis.call('HLEN', KEYS[8]) + redis.call('HLEN', KEYS[9]) + 1
if parts[1] and parts[1] == parts[2] and left == 0 and settled >= redis.call('HLEN', KEYS[2])
    and redis.call('EXISTS', KEYS[10]) == 0 then
  write('SET', KEYS[10], '1', 'EX', ARGV[1])
  return commit('complete')
end
return commit('dead')
