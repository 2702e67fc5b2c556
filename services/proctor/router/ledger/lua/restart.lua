-- Begin again after an interruption or a failure: what is answered stays, everything else is queued afresh. Attempts
-- stay counted: an answer to one from before must not pass for one of now.
-- KEYS: spent parts plan queue leases failures losses done dead fired   ARGV: ttl_s stage
-- Returns the number of shards that are queued.
for _, i in ipairs({4, 5, 6, 7, 9, 10}) do write('DEL', KEYS[i]) end
-- Without its parts a plan is what is left of one: it is laid down anew.
local is_laid = redis.call('EXISTS', KEYS[2]) == 1
if not is_laid then write('DEL', KEYS[3]) end
local entries, queued, answered = is_laid and redis.call('HGETALL', KEYS[3]) or {}, {}, 0
for i = 1, #entries, 2 do
  local position, trials = string.match(entries[i + 1], '^(%d+) (%d+)')
  if redis.call('HEXISTS', KEYS[8], entries[i]) == 0 then
    queued[#queued + 1] = position
    queued[#queued + 1] = entries[i]
  else
    answered = answered + count(trials)
  end
end
write_all('ZADD', KEYS[4], queued)
if redis.call('HEXISTS', KEYS[1], ARGV[2] .. ' trials') == 0 then
  -- It was lost what was spent. The trials are known by the plan all the same; their tokens are not, and answers of
  -- which there is no plan are nobody's.
  if answered > 0 then write('HSET', KEYS[1], ARGV[2] .. ' trials', raised(answered, 0)) end
  if #entries == 0 then write('DEL', KEYS[8]) end
end
expire(KEYS, ARGV[1])
return commit(#queued / 2)
