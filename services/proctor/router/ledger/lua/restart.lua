-- Begin again after an interruption or a failure: what is answered stays, everything else is queued afresh. Attempts
-- stay counted: an answer to one from before must not pass for one of now.
-- Keys: spent parts plan queue leases failures losses done dead fired
-- Arguments: ttl_s stage
-- Returns the number of shards that are queued.
for _, name in ipairs({key.queue, key.leases, key.failures, key.losses, key.dead, key.fired}) do write('DEL', name) end
-- Without its parts a plan is what is left of one: it is laid down anew.
local is_laid = redis.call('EXISTS', key.parts) == 1
if not is_laid then write('DEL', key.plan) end
local entries, queued, answered = is_laid and redis.call('HGETALL', key.plan) or {}, {}, 0
for i = 1, #entries, 2 do
  local position, trials = string.match(entries[i + 1], '^(%d+) (%d+)')
  if redis.call('HEXISTS', key.done, entries[i]) == 0 then
    queued[#queued + 1] = position
    queued[#queued + 1] = entries[i]
  else
    answered = answered + count(trials)
  end
end
write_all('ZADD', key.queue, queued)
if redis.call('HEXISTS', key.spent, arg.stage .. ' trials') == 0 then
  -- It was lost what was spent. The trials are known by the plan all the same; their tokens are not, and answers of
  -- which there is no plan are nobody's.
  if answered > 0 then write('HSET', key.spent, arg.stage .. ' trials', raised(answered, 0)) end
  if #entries == 0 then write('DEL', key.done) end
end
expire(KEYS, arg.ttl_s)
return commit(#queued / 2)
