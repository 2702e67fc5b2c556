-- Lay down a stage's shards, once. A second plan must be the same one. What was done or given up before (the plan may
-- have expired, or been lost, by itself) is not queued again.
-- KEYS: stages plan queue done dead
-- ARGV: ttl_s stage, then (shard_id, entry) pairs in the order in which they should run
-- Returns 1 when planned now, 0 when it was there, -1 when another plan was there.
local count = (#ARGV - 2) / 2
if redis.call('EXISTS', KEYS[2]) == 1 then
  if redis.call('HLEN', KEYS[2]) ~= count then return -1 end
  for i = 1, count do
    if redis.call('HGET', KEYS[2], ARGV[2 * i + 1]) ~= ARGV[2 * i + 2] then return -1 end
  end
  return 0
end
for i = 1, count do
  local shard = ARGV[2 * i + 1]
  redis.call('HSET', KEYS[2], shard, ARGV[2 * i + 2])
  if redis.call('HEXISTS', KEYS[4], shard) == 0 and redis.call('HEXISTS', KEYS[5], shard) == 0 then
    redis.call('ZADD', KEYS[3], i, shard)
  end
end
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
redis.call('EXPIRE', KEYS[3], ARGV[1])
return 1
