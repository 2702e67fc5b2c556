-- Begin again after an interruption or a failure: what is answered stays, everything else is queued afresh. Attempts
-- stay counted: an answer to one from before must not pass for one of now.
-- KEYS: plan queue leases failures losses done dead fired   ARGV: ttl_s
-- Returns the number of shards that are queued.
redis.call('DEL', KEYS[3], KEYS[4], KEYS[5], KEYS[7], KEYS[8])
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  if redis.call('HEXISTS', KEYS[6], entries[i]) == 0 then
    redis.call('ZADD', KEYS[2], string.match(entries[i + 1], '^%d+'), entries[i])
  end
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return redis.call('ZCARD', KEYS[2])
