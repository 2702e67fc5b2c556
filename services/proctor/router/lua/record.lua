-- Record shards' results: the first write wins, and a shard that was given up stays given up, so that answered and
-- dead shards are disjoint. What an answer cost is added where it is recorded, and nowhere else. Completion is set
-- membership, never a counter that a duplicate could move.
-- KEYS: spent parts plan queue leases done dead fired
-- ARGV: ttl_s stage, then (shard_id, result_digest, input_tokens, output_tokens) rows
-- Returns for each row 'unknown', 'duplicate', 'recorded', or 'complete' (once).
local outcomes, recorded = {}, nil
local trials, input_tokens, output_tokens = 0, 0, 0
for i = 3, #ARGV, 4 do
  local shard, outcome = ARGV[i], 'unknown'
  local entry = redis.call('HGET', KEYS[3], shard)
  if entry then
    outcome = 'duplicate'
    if redis.call('HEXISTS', KEYS[7], shard) == 0 and redis.call('HSETNX', KEYS[6], shard, ARGV[i + 1]) == 1 then
      outcome = 'recorded'
      redis.call('ZREM', KEYS[5], shard)
      redis.call('ZREM', KEYS[4], shard)
      trials = trials + tonumber(string.match(entry, '^%d+ (%d+)'))
      input_tokens = input_tokens + tonumber(ARGV[i + 2])
      output_tokens = output_tokens + tonumber(ARGV[i + 3])
    end
  end
  outcomes[#outcomes + 1] = outcome
  if outcome == 'recorded' then recorded = #outcomes end
end
if not recorded then return outcomes end
redis.call('HINCRBY', KEYS[1], ARGV[2] .. ' trials', trials)
redis.call('HINCRBY', KEYS[1], ARGV[2] .. ' input_tokens', input_tokens)
redis.call('HINCRBY', KEYS[1], ARGV[2] .. ' output_tokens', output_tokens)
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
local parts = redis.call('HMGET', KEYS[2], 'laid', 'of')
if parts[1] and parts[1] == parts[2] and redis.call('EXISTS', KEYS[4], KEYS[5]) == 0
    and redis.call('HLEN', KEYS[6]) + redis.call('HLEN', KEYS[7]) >= redis.call('HLEN', KEYS[3])
    and redis.call('SET', KEYS[8], '1', 'NX', 'EX', ARGV[1]) then
  outcomes[recorded] = 'complete'
end
return outcomes
