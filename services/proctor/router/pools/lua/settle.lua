-- Give credits back, and note what the answers to their shards tell about the pool's servers.
-- Keys: credits claimed pace breaker
-- Arguments: ttl_s worked n_trials seconds output_tokens weight
-- Rows: name
local names = {}
for i = FIRST, #ARGV do names[#names + 1] = ARGV[i] end
write_all('ZREM', key.credits, names)
write_all('HDEL', key.claimed, names)
local n_trials = tonumber(arg.n_trials)
if n_trials > 0 then
  local weight = tonumber(arg.weight)
  for field, value in pairs({seconds = tonumber(arg.seconds), output_tokens = tonumber(arg.output_tokens)}) do
    local before = tonumber(redis.call('HGET', key.pace, field) or nil)
    local newest = value / n_trials
    local pace = before and before + weight * (newest - before) or newest
    write('HSET', key.pace, field, string.format('%.9g', pace))
  end
  expire({key.pace}, arg.ttl_s)
end
if arg.worked == '1' then write('DEL', key.breaker) end
return commit(1)
