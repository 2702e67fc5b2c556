-- Lay down a part of a stage, once: the first plan of a part stands. What was done or given up before (the plan may
-- have expired, or been lost, by itself) is not queued again.
-- KEYS: stages parts plan queue leases done dead fired
-- ARGV: ttl_s stage part parts total_trials|'', then (shard_id, entry) pairs; an entry begins with position and trials
-- Returns 1 when laid down now, 0 when it was there, -1 when the stage has another number of parts, -2 when an earlier
-- part is missing.
local part = tonumber(ARGV[3])
local known = redis.call('HMGET', KEYS[2], 'laid', 'of', 'planned')
local laid = tonumber(known[1] or 0)
if not known[1] or (tonumber(known[3]) > 0 and redis.call('EXISTS', KEYS[3]) == 0) then
  -- A new stage, or one of which keys were lost: what is left of its plan would be counted beside the new one.
  redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[8])
  laid = 0
elseif known[2] ~= ARGV[4] then
  return -1
end
if part < laid then return 0 end
if part > laid then return -2 end
local trials = 0
for i = 6, #ARGV, 2 do
  local shard = ARGV[i]
  redis.call('HSET', KEYS[3], shard, ARGV[i + 1])
  trials = trials + tonumber(string.match(ARGV[i + 1], '^%d+ (%d+)'))
  if redis.call('HEXISTS', KEYS[6], shard) == 0 and redis.call('HEXISTS', KEYS[7], shard) == 0 then
    redis.call('ZADD', KEYS[4], string.match(ARGV[i + 1], '^%d+'), shard)
  end
end
redis.call('HSET', KEYS[2], 'laid', part + 1, 'of', ARGV[4])
redis.call('HINCRBY', KEYS[2], 'planned', trials)
if ARGV[5] ~= '' then redis.call('HSET', KEYS[2], 'trials', ARGV[5]) end
redis.call('SADD', KEYS[1], ARGV[2])
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, ARGV[1]) end
return 1
