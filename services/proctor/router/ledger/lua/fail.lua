-- An attempt at a shard came to nothing: queue it again, or give it up with the cause.
-- A setback of an attempt that is not the current one is stale: a newer copy is under way.
-- Keys: parts plan queue leases attempts failures losses done dead fired
-- Arguments: ttl_s shard_id attempt setback max_failures max_losses cause
-- Parts: ending
-- Returns 'stale', 'queued', 'dead', or 'complete' (once).
local shard, setback = arg.shard_id, arg.setback
local entry = redis.call('HGET', key.plan, shard)
-- An attempt whose number was lost is attempt 0, as it is to who looks for what is overdue.
if not entry or (redis.call('HGET', key.attempts, shard) or '0') ~= arg.attempt then return 'stale' end
if not redis.call('ZSCORE', key.leases, shard) then return 'stale' end
local position, n_trials = string.match(entry, '^(%d+) (%d+)')
local over = setback == 'final'
write('ZREM', key.leases, shard)
if setback == 'failed' then
  local failures = raised(redis.call('HGET', key.failures, shard), 1)
  write('HSET', key.failures, shard, failures)
  over = tonumber(failures) >= tonumber(arg.max_failures)
elseif setback == 'lost' then
  local losses = raised(redis.call('HGET', key.losses, shard), 1)
  write('HSET', key.losses, shard, losses)
  over = tonumber(losses) >= tonumber(arg.max_losses) and tonumber(n_trials) == 1
end
if over then
  write('HSET', key.dead, shard, arg.cause)
else
  write('ZADD', key.queue, position, shard)
end
expire(KEYS, arg.ttl_s)
if not over then return commit('queued') end
return commit(ends_stage(1, 1, arg.ttl_s) and 'complete' or 'dead')
