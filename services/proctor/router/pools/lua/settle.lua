-- Give credits back, and note what the answers to their shards tell about the pool's servers.
-- KEYS: credits claimed pace breaker
-- ARGV: ttl_s worked n_trials seconds output_tokens weight, then names of credits
local names = {}
for i = 7, #ARGV do names[#names + 1] = ARGV[i] end
write_all('ZREM', KEYS[1], names)
write_all('HDEL', KEYS[2], names)
local n_trials = tonumber(ARGV[3])
if n_trials > 0 then
  local weight = tonumber(ARGV[6])
  for field, value in pairs({seconds = tonumber(ARGV[4]), output_tokens = tonumber(ARGV[5])}) do
    local before = tonumber(redis.call('HGET', KEYS[3], field) or nil)
    local newest = value / n_trials
    local pace = before and before + weight * (newest - before) or newest
    write('HSET', KEYS[3], field, string.format('%.9g', pace))
  end
  expire({KEYS[3]}, ARGV[1])
end
if ARGV[2] == '1' then write('DEL', KEYS[4]) end
return commit(1)
