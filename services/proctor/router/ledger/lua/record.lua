-- Record shards' results: the first write wins, and a shard that was given up stays given up, so that answered and
-- dead shards are disjoint. What an answer cost is added where it is recorded, and nowhere else. Completion is set
-- membership, never a counter that a duplicate could move.
-- KEYS: spent parts plan queue leases done dead fired
-- ARGV: ttl_s stage, then (shard_id, result_digest, input_tokens, output_tokens) rows
-- Returns for each row 'unknown', 'duplicate', 'recorded', or 'complete' (once).
local outcomes, recorded = {}, nil
local results, is_new, waiting = {}, {}, {{}, {}}
local trials, input_tokens, output_tokens = 0, 0, 0
for i = 3, #ARGV, 4 do
  local shard, outcome = ARGV[i], 'unknown'
  local entry = redis.call('HGET', KEYS[3], shard)
  if entry then
    outcome = 'duplicate'
    if not is_new[shard] and redis.call('HEXISTS', KEYS[7], shard) == 0
        and redis.call('HEXISTS', KEYS[6], shard) == 0 then
      outcome, is_new[shard] = 'recorded', true
      results[#results + 1] = shard
      results[#results + 1] = ARGV[i + 1]
      for place = 1, 2 do
        if redis.call('ZSCORE', KEYS[3 + place], shard) then waiting[place][#waiting[place] + 1] = shard end
      end
      trials = trials + count(string.match(entry, '^%d+ (%d+)'))
      input_tokens = input_tokens + count(ARGV[i + 2])
      output_tokens = output_tokens + count(ARGV[i + 3])
    end
  end
  outcomes[#outcomes + 1] = outcome
  if outcome == 'recorded' then recorded = #outcomes end
end
if not recorded then return outcomes end
local units = {ARGV[2] .. ' trials', ARGV[2] .. ' input_tokens', ARGV[2] .. ' output_tokens'}
local spent = redis.call('HMGET', KEYS[1], unpack(units))
write_all('HSET', KEYS[6], results)
write_all('ZREM', KEYS[4], waiting[1])
write_all('ZREM', KEYS[5], waiting[2])
write('HSET', KEYS[1], units[1], raised(spent[1], trials), units[2], raised(spent[2], input_tokens),
  units[3], raised(spent[3], output_tokens))
expire(KEYS, ARGV[1])
local parts = redis.call('HMGET', KEYS[2], 'laid', 'of')
local left = redis.call('ZCARD', KEYS[4]) + redis.call('ZCARD', KEYS[5]) - #waiting[1] - #waiting[2]
local settled = redis.call('HLEN', KEYS[6]) + #results / 2 + redis.call('HLEN', KEYS[7])
if parts[1] and parts[1] == parts[2] and left == 0 and settled >= redis.call('HLEN', KEYS[3])
    and redis.call('EXISTS', KEYS[8]) == 0 then
  write('SET', KEYS[8], '1', 'EX', ARGV[1])
  outcomes[recorded] = 'complete'
end
return commit(outcomes)
