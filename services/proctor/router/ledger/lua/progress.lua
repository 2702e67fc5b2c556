-- Trials of a stage by where their shards are. Reads what is under way or given up, and not the whole plan: what was
-- planned and what was recorded is summed up by the steps that did it.
-- Keys: spent parts plan leases dead
-- Arguments: stage
-- Returns trials planned (of the whole stage where that is known), done, leased, dead.
local function trials(shards)
  local sum = 0
  for _, shard in ipairs(shards) do
    local entry = redis.call('HGET', key.plan, shard)
    if entry then sum = sum + tonumber(string.match(entry, '^%d+ (%d+)')) end
  end
  return sum
end
local size = redis.call('HMGET', key.parts, 'trials', 'planned')
local planned = tonumber(size[1] or size[2] or 0)
local recorded = tonumber(redis.call('HGET', key.spent, arg.stage .. ' trials') or 0)
return {
  planned,
  -- More were recorded than are planned where a plan was lost, and its trials were cut anew and asked again.
  math.min(recorded, planned),
  trials(redis.call('ZRANGE', key.leases, 0, -1)),
  trials(redis.call('HKEYS', key.dead)),
}
