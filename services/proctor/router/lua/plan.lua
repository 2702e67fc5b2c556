-- Lay down an audit's shards, once. A second plan must be the same one.
-- KEYS: plan queue   ARGV: ttl_s, then (shard_id, entry) pairs in the order in which they should run
-- Returns 1 when planned now, 0 when it was there, -1 when another plan was there.
local count = (#ARGV - 1) / 2
if redis.call('EXISTS', KEYS[1]) == 1 then
  if redis.call('HLEN', KEYS[1]) ~= count then return -1 end
  for i = 1, count do
    if redis.call('HGET', KEYS[1], ARGV[2 * i]) ~= ARGV[2 * i + 1] then return -1 end
  end
  return 0
end
for i = 1, count do
  redis.call('HSET', KEYS[1], ARGV[2 * i], ARGV[2 * i + 1])
  redis.call('ZADD', KEYS[2], i, ARGV[2 * i])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
