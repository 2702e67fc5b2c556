-- Begin again after an interruption or a failure: what is answered stays, everything else is queued afresh. Attempts
-- stay counted: an answer to one from before must not pass for one of now. Shards with trials that were refused are no
-- answered ones where `ask_refused` is 1; what they used stays spent, but for their trials, which are asked anew.
-- Keys: spent parts plan queue leases failures losses done dead refused fired
-- Arguments: ttl_s stage ask_refused
-- Returns the number of shards that are queued.
for _, name in ipairs({key.queue, key.leases, key.failures, key.losses, key.dead, key.fired}) do write('DEL', name) end
-- Without its parts a plan is what is left of one: it is laid down anew.
local is_laid = redis.call('EXISTS', key.parts) == 1
if not is_laid then write('DEL', key.plan) end
local entries, queued, answered, again = is_laid and redis.call('HGETALL', key.plan) or {}, {}, 0, 0
local forgotten, is_forgotten = {}, {}
if arg.ask_refused == '1' then
  for _, shard in ipairs(redis.call('HKEYS', key.refused)) do
    if redis.call('HEXISTS', key.done, shard) == 1 then
      forgotten[#forgotten + 1], is_forgotten[shard] = shard, true
    end
  end
  write('DEL', key.refused)
  write_all('HDEL', key.done, forgotten)
end
for i = 1, #entries, 2 do
  local position, trials = string.match(entries[i + 1], '^(%d+) (%d+)')
  if is_forgotten[entries[i]] or redis.call('HEXISTS', key.done, entries[i]) == 0 then
    if is_forgotten[entries[i]] then again = again + count(trials) end
    queued[#queued + 1] = position
    queued[#queued + 1] = entries[i]
  else
    answered = answered + count(trials)
  end
end
write_all('ZADD', key.queue, queued)
local spent = redis.call('HGET', key.spent, arg.stage .. ' trials')
if not spent then
  -- It was lost what was spent. The trials are known by the plan all the same; their tokens are not, and answers of
  -- which there is no plan are nobody's.
  if answered > 0 then write('HSET', key.spent, arg.stage .. ' trials', raised(answered, 0)) end
  if #entries == 0 then write('DEL', key.done) end
elseif again > 0 then
  write('HSET', key.spent, arg.stage .. ' trials', raised(math.max(count(spent) - again, 0), 0))
end
expire(KEYS, arg.ttl_s)
return commit(#queued / 2)
