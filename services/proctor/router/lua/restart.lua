-- Begin again after an interruption or a failure: what is answered stays, everything else is queued afresh.
-- KEYS: plan queue leases attempts done dead fired   ARGV: ttl_s
-- Returns the number of shards that are queued.
redis.call('DEL', KEYS[3], KEYS[4], KEYS[6], KEYS[7])
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  if redis.call('HEXISTS', KEYS[5], entries[i]) == 0 then
    redis.call('ZADD', KEYS[2], tonumber(string.match(entries[i + 1], '^%d+')), entries[i])
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[1])
return redis.call('ZCARD', KEYS[2])
