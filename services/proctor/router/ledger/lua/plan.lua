-- Lay down a part of a stage, once: the first plan of a part stands. What was done or given up before (the plan may
-- have expired, or been lost, by itself) is not queued again.
-- Keys: stages parts plan queue leases done dead fired
-- Arguments: ttl_s stage part parts total_trials
-- Rows: shard_id entry
-- An entry begins with the shard's position and trials; total_trials is '' where it is not known.
-- Returns 1 when laid down now, 0 when it was there, -1 when the stage has another number of parts, -2 when an earlier
-- part is missing.
local part = count(arg.part)
local known = redis.call('HMGET', key.parts, 'laid', 'of', 'planned')
local laid, planned = count(known[1]), count(known[3])
-- A new stage, or one of which keys were lost: what is left of its plan would be counted beside the new one.
local anew = not known[1] or (planned > 0 and redis.call('EXISTS', key.plan) == 0)
if anew then
  laid, planned = 0, 0
  for _, name in ipairs({key.parts, key.plan, key.queue, key.leases, key.fired}) do write('DEL', name) end
elseif known[2] ~= arg.parts then
  return -1
end
if part < laid then return 0 end
if part > laid then return -2 end
local is_new, entries, queued = {}, {}, {}
for i = FIRST, #ARGV, WIDTH do
  local shard, entry = unpack(ARGV, i, i + WIDTH - 1)
  local position, trials = string.match(entry, '^(%d+) (%d+)')
  planned, is_new[shard] = planned + count(trials), true
  entries[#entries + 1] = shard
  entries[#entries + 1] = entry
  if redis.call('HEXISTS', key.done, shard) == 0 and redis.call('HEXISTS', key.dead, shard) == 0 then
    queued[#queued + 1] = position
    queued[#queued + 1] = shard
  end
end
if part + 1 == count(arg.parts) then
  -- Of a plan that was lost: now that all of its successor is known, it would pass for a part of it.
  for _, settled in ipairs({key.done, key.dead}) do
    local foreign = {}
    for _, shard in ipairs(redis.call('HKEYS', settled)) do
      if not is_new[shard] and (anew or redis.call('HEXISTS', key.plan, shard) == 0) then
        foreign[#foreign + 1] = shard
      end
    end
    write_all('HDEL', settled, foreign)
  end
end
write_all('HSET', key.plan, entries)
write_all('ZADD', key.queue, queued)
if arg.total_trials ~= '' then write('HSET', key.parts, 'trials', arg.total_trials) end
write('HSET', key.parts, 'laid', part + 1, 'of', arg.parts, 'planned', raised(planned, 0))
write('SADD', key.stages, arg.stage)
expire(KEYS, arg.ttl_s)
return commit(1)
