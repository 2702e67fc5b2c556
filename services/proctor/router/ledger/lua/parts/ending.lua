-- The end of a stage: all of its parts are laid down, and every shard of them is done or dead.
-- Keys: parts plan queue leases done dead fired
-- Gives: ends_stage.
-- Holds: it is said of one step alone, whatever is delivered twice: completion is set membership, and `fired` is set by
-- the step of which it is said.

-- Whether this step, by which so many shards leave the queue and the leases and so many are settled, ends the stage.
local function ends_stage(n_taken, n_settled, ttl_s)
  local parts = redis.call('HMGET', key.parts, 'laid', 'of')
  local left = redis.call('ZCARD', key.queue) + redis.call('ZCARD', key.leases) - n_taken
  local settled = redis.call('HLEN', key.done) + redis.call('HLEN', key.dead) + n_settled
  local ends = parts[1] and parts[1] == parts[2] and left == 0 and settled >= redis.call('HLEN', key.plan)
    and redis.call('EXISTS', key.fired) == 0
  if ends then write('SET', key.fired, '1', 'EX', ttl_s) end
  return ends
end
