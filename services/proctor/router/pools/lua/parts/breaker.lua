-- The breaker of a pool: open while its servers are away. Then nothing is granted but, after each wait, one shard to
-- probe whether they are back.
-- Keys: breaker probes suspects
-- Gives: look_at_breaker; may_probe, probe_of, begin_probe for who claims; open_breaker, has_probed, probed_in_vain for
-- who got no answer.
-- Holds: closed, the key `breaker` is not there. `probes` are those that probed in this outage or the last, `suspects`
-- those that got no answer in it; what is in `probes` does not count as a loss when it gets none.

-- {since, until_ms, wait, probe}: in ms, but for the name of the shard that probes, if one does; nil where closed.
local function look_at_breaker()
  local found = redis.call('HMGET', key.breaker, 'since', 'until', 'wait', 'probe')
  if not found[1] then return nil end
  return {since = tonumber(found[1]), until_ms = tonumber(found[2]), wait = tonumber(found[3]), probe = found[4]}
end

-- Whether a shard may probe now. `given_back`: the one that probes holds no credit any more, and nothing was said of
-- what came of it, so that it does not keep another from it.
local function may_probe(breaker, now, given_back)
  -- No wait is twice as long as it should be, but for a clock that was put back.
  local remains = breaker.until_ms - now
  return given_back or remains <= 0 or remains > 2 * breaker.wait
end

-- Which of the shards is to probe: the first that is no suspect, which may be what causes the outage; or the first.
local function probe_of(names)
  for place, name in ipairs(names) do
    if redis.call('SISMEMBER', key.suspects, name) == 0 then return place end
  end
  return #names > 0 and 1 or nil
end

-- Have a shard probe; no other does until its wait is over.
local function begin_probe(breaker, now, name)
  write('HSET', key.breaker, 'until', now + breaker.wait, 'probe', name)
  write('SADD', key.probes, name)
  write('PEXPIRE', key.probes, math.max(redis.call('PTTL', key.breaker), 1))
end

-- The servers went away: wait for the first time. What was known of an earlier outage is forgotten.
local function open_breaker(now, first_wait_ms, stretch)
  write('DEL', key.probes)
  write('DEL', key.suspects)
  write('HSET', key.breaker, 'since', now, 'wait', first_wait_ms, 'until', now + math.floor(first_wait_ms * stretch))
end

-- Whether a shard probed in this outage.
local function has_probed(name)
  return redis.call('SISMEMBER', key.probes, name) == 1
end

-- A shard probed, and the servers are still away: wait twice as long.
local function probed_in_vain(now, name, wait_ms, longest_wait_ms, stretch)
  local wait = math.min(wait_ms * 2, longest_wait_ms)
  write('SREM', key.probes, name)
  write('HSET', key.breaker, 'wait', wait, 'until', now + math.floor(wait * stretch))
  write('HDEL', key.breaker, 'probe')
end
