-- Lay down a part of a stage, once: the first plan of a part stands. What was done or given up before (the plan may
-- have expired, or been lost, by itself) is not queued again.
-- KEYS: stages parts plan queue leases done dead fired
-- ARGV: ttl_s stage part parts total_trials|'', then (shard_id, entry) pairs; an entry begins with position and trials
-- Returns 1 when laid down now, 0 when it was there, -1 when the stage has another number of parts, -2 when an earlier
-- part is missing.
local part = count(ARGV[3])
local known = redis.call('HMGET', KEYS[2], 'laid', 'of', 'planned')
local laid, planned = count(known[1]), count(known[3])
-- A new stage, or one of which keys were lost: what is left of its plan would be counted beside the new one.
local anew = not known[1] or (planned > 0 and redis.call('EXISTS', KEYS[3]) == 0)
if anew then
  laid, planned = 0, 0
  for _, i in ipairs({2, 3, 4, 5, 8}) do write('DEL', KEYS[i]) end
elseif known[2] ~= ARGV[4] then
  return -1
end
if part < laid then return 0 end
if part > laid then return -2 end
local is_new, entries, queued = {}, {}, {}
for i = 6, #ARGV, 2 do
  local shard, entry = ARGV[i], ARGV[i + 1]
  local position, trials = string.match(entry, '^(%d+) (%d+)')
  planned, is_new[shard] = planned + count(trials), true
  entries[#entries + 1] = shard
  entries[#entries + 1] = entry
  if redis.call('HEXISTS', KEYS[6], shard) == 0 and redis.call('HEXISTS', KEYS[7], shard) == 0 then
    queued[#queued + 1] = position
    queued[#queued + 1] = shard
  end
end
if part + 1 == count(ARGV[4]) then
  -- Of a plan that was lost: now that all of its successor is known, it would pass for a part of it.
  for _, key in ipairs({KEYS[6], KEYS[7]}) do
    local foreign = {}
    for _, shard in ipairs(redis.call('HKEYS', key)) do
      if not is_new[shard] and (anew or redis.call('HEXISTS', KEYS[3], shard) == 0) then
        foreign[#foreign + 1] = shard
      end
    end
    write_all('HDEL', key, foreign)
  end
end
write_all('HSET', KEYS[3], entries)
write_all('ZADD', KEYS[4], queued)
if ARGV[5] ~= '' then write('HSET', KEYS[2], 'trials', ARGV[5]) end
write('HSET', KEYS[2], 'laid', part + 1, 'of', ARGV[4], 'planned', raised(planned, 0))
write('SADD', KEYS[1], ARGV[2])
expire(KEYS, ARGV[1])
return commit(1)
