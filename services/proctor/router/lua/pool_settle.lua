-- Give credits back, and note what the answers to their shards tell about the pool's servers.
-- KEYS: credits claimed pace breaker
-- ARGV: ttl_s worked n_trials seconds output_tokens weight, then names of credits
for i = 7, #ARGV do
  redis.call('ZREM', KEYS[1], ARGV[i])
  redis.call('HDEL', KEYS[2], ARGV[i])
end
local n_trials = tonumber(ARGV[3])
if n_trials > 0 then
  local weight = tonumber(ARGV[6])
  for field, value in pairs({seconds = tonumber(ARGV[4]), output_tokens = tonumber(ARGV[5])}) do
    local before = redis.call('HGET', KEYS[3], field)
    local newest = value / n_trials
    local pace = before and tonumber(before) + weight * (newest - tonumber(before)) or newest
    redis.call('HSET', KEYS[3], field, string.format('%.9g', pace))
  end
  redis.call('EXPIRE', KEYS[3], ARGV[1])
end
if ARGV[2] == '1' then redis.call('DEL', KEYS[4]) end
return 1
