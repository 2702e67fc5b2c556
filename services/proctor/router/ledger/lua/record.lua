-- Record shards' results: the first write wins, and a shard that was given up stays given up, so that answered and
-- dead shards are disjoint. What an answer cost is added where it is recorded, and nowhere else. Completion is set
-- membership, never a counter that a duplicate could move.
-- Keys: spent parts plan queue leases done dead refused fired
-- Arguments: ttl_s stage
-- Rows: shard_id completions input_tokens output_tokens n_refused
-- Parts: ending
-- Returns for each row 'unknown', 'duplicate', 'recorded', or 'complete' (once).
local outcomes, recorded = {}, nil
local results, is_new, waiting = {}, {}, {queue = {}, leases = {}}
local refusals, unrefused = {}, {}
local trials, input_tokens, output_tokens = 0, 0, 0
for i = FIRST, #ARGV, WIDTH do
  local shard, completions, read, written, refused = unpack(ARGV, i, i + WIDTH - 1)
  local outcome = 'unknown'
  local entry = redis.call('HGET', key.plan, shard)
  if entry then
    outcome = 'duplicate'
    if not is_new[shard] and redis.call('HEXISTS', key.dead, shard) == 0
        and redis.call('HEXISTS', key.done, shard) == 0 then
      outcome, is_new[shard] = 'recorded', true
      results[#results + 1] = shard
      results[#results + 1] = completions
      if count(refused) > 0 then
        refusals[#refusals + 1] = shard
        refusals[#refusals + 1] = raised(refused, 0)
      elseif redis.call('HEXISTS', key.refused, shard) == 1 then
        -- By an earlier answer, which was lost.
        unrefused[#unrefused + 1] = shard
      end
      for name, found in pairs(waiting) do
        if redis.call('ZSCORE', key[name], shard) then found[#found + 1] = shard end
      end
      trials = trials + count(string.match(entry, '^%d+ (%d+)'))
      input_tokens = input_tokens + count(read)
      output_tokens = output_tokens + count(written)
    end
  end
  outcomes[#outcomes + 1] = outcome
  if outcome == 'recorded' then recorded = #outcomes end
end
if not recorded then return outcomes end
local units = {arg.stage .. ' trials', arg.stage .. ' input_tokens', arg.stage .. ' output_tokens'}
local spent = redis.call('HMGET', key.spent, unpack(units))
write_all('HSET', key.done, results)
write_all('HSET', key.refused, refusals)
write_all('HDEL', key.refused, unrefused)
write_all('ZREM', key.queue, waiting.queue)
write_all('ZREM', key.leases, waiting.leases)
write('HSET', key.spent, units[1], raised(spent[1], trials), units[2], raised(spent[2], input_tokens),
  units[3], raised(spent[3], output_tokens))
expire(KEYS, arg.ttl_s)
if ends_stage(#waiting.queue + #waiting.leases, #results / 2, arg.ttl_s) then outcomes[recorded] = 'complete' end
return commit(outcomes)
