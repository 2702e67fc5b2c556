-- Credits of a pool: which shards hold one, and until when (server's ms).
-- Keys: credits claimed
-- Gives: tidy_credits, which comes first; then holds, outstanding, held_by_audit, give.
-- Holds: a name is in `credits` exactly as long as in `claimed`, and none has longer to run than a lease is long.
local over, is_over = {}, {}

-- Take back what has ended by `now`, and shorten what ends after `latest`, which no credit may.
local function tidy_credits(now, latest)
  over = redis.call('ZRANGEBYSCORE', key.credits, '-inf', now)
  for _, name in ipairs(over) do is_over[name] = true end
  write_all('ZREM', key.credits, over)
  write_all('HDEL', key.claimed, over)
  -- What has longer to run is of before the server's clock was put back.
  local overlong = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', key.credits, '(' .. string.format('%.0f', latest), '+inf')) do
    overlong[#overlong + 1] = latest
    overlong[#overlong + 1] = name
  end
  write_all('ZADD', key.credits, overlong)
end

-- Whether a name holds a credit.
local function holds(name)
  return not is_over[name] and redis.call('ZSCORE', key.credits, name)
end

-- How many credits are held, without those that this step gives.
local function outstanding()
  return redis.call('ZCARD', key.credits) - #over
end

-- For each audit that holds any: how many. A name begins with its audit.
local function held_by_audit()
  local held = {}
  for _, name in ipairs(redis.call('ZRANGE', key.credits, 0, -1)) do
    if not is_over[name] then
      local audit = string.match(name, '^[^/]*')
      held[audit] = (held[audit] or 0) + 1
    end
  end
  return held
end

-- Give a name a credit from now until `ends`.
local function give(name, now, ends)
  write('ZADD', key.credits, ends, name)
  write('HSET', key.claimed, name, now)
end
