-- Give credits of a pool to shards of an audit, as far as its share goes.
-- KEYS: credits claimed wants breaker probes suspects
-- ARGV: ttl_s prefix audit wanted capacity priority lease_ms, then shard ids; a credit's name is prefix .. shard id
-- Returns: the shard ids that hold a credit, 1 when the one that does is to probe, and the other audits that could have
-- more now.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- In microseconds: who was served last is told apart from who was served in the same millisecond.
local turn = time[1] * 1000000 + time[2]
local prefix, audit, capacity = ARGV[2], ARGV[3], tonumber(ARGV[5])
local lease_ms = tonumber(ARGV[7])
local ends = now + lease_ms
local ttl_s = math.max(tonumber(ARGV[1]), math.ceil(lease_ms / 1000))

local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)
local is_over = {}
for _, name in ipairs(over) do is_over[name] = true end
write_all('ZREM', KEYS[1], over)
write_all('HDEL', KEYS[2], over)
-- What has longer to run than a lease is long is of before the server's clock was put back.
local overlong = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', ends), '+inf')) do
  overlong[#overlong + 1] = ends
  overlong[#overlong + 1] = name
end
write_all('ZADD', KEYS[1], overlong)

local function holds(name)
  return not is_over[name] and redis.call('ZSCORE', KEYS[1], name)
end

local granted, fresh, keeps = {}, 0, {}
for i = 8, #ARGV do
  if holds(prefix .. ARGV[i]) then keeps[ARGV[i]] = true else fresh = fresh + 1 end
end
local more = math.max(tonumber(ARGV[4]) - (#ARGV - 7 - fresh), 0)

local function credit(shard)
  write('ZADD', KEYS[1], ends, prefix .. shard)
  write('HSET', KEYS[2], prefix .. shard, now)
  granted[#granted + 1] = shard
end

-- What an audit wants beyond what it holds; with its last turn, so that whoever was served longest ago is first.
local function note_wish(wanted, last_turn)
  if wanted > 0 then
    write('HSET', KEYS[3], audit, string.format('%d %s %d %s', wanted, ARGV[6], ends, last_turn))
  else
    write('HDEL', KEYS[3], audit)
  end
  expire({KEYS[1], KEYS[2], KEYS[3]}, ttl_s)
end

local claimants, last_turn, alone = {}, '0', true
local wishes = redis.call('HGETALL', KEYS[3])
for i = 1, #wishes, 2 do
  local wish, priority, until_ms, served = string.match(wishes[i + 1], '^(%d+) (%-?%d+) (%d+) (%d+)$')
  -- Served in the future is served before the server's clock was put back: it is as good as never.
  if tonumber(served) > turn then served = '0' end
  if wishes[i] == audit then
    last_turn = served
  elseif tonumber(until_ms) <= now or tonumber(until_ms) > now + 2 * lease_ms then
    write('HDEL', KEYS[3], wishes[i])
  else
    alone = false
    claimants[#claimants + 1] =
      {audit = wishes[i], more = tonumber(wish), priority = tonumber(priority), served = tonumber(served), held = 0}
  end
end

local breaker = redis.call('HMGET', KEYS[4], 'since', 'until', 'wait', 'probe')
if breaker[1] then
  -- A probing shard whose credit was given back, without a word of what came of it, does not keep another from it.
  local given_back = breaker[4] and not holds(breaker[4])
  -- No wait is twice as long as it should be, but for a clock that was put back.
  local remains = tonumber(breaker[2]) - now
  local may_probe = given_back or remains <= 0 or remains > 2 * tonumber(breaker[3])
  local room = redis.call('ZCARD', KEYS[1]) - #over < capacity
  local chosen
  for i = 8, #ARGV do
    local shard, name = ARGV[i], prefix .. ARGV[i]
    if may_probe and (room or keeps[shard]) then
      -- One that got no answer in this outage may be what causes it: another is a better probe.
      local suspect = redis.call('SISMEMBER', KEYS[6], name) == 1
      if not suspect then chosen = shard break end
      chosen = chosen or shard
    elseif not may_probe and name == breaker[4] and keeps[shard] then
      -- The probing shard is granted again: its first grant may have died with whoever claimed it.
      chosen = shard break
    end
  end
  if chosen then
    if may_probe then
      write('HSET', KEYS[4], 'until', now + tonumber(breaker[3]), 'probe', prefix .. chosen)
      write('SADD', KEYS[5], prefix .. chosen)
      write('PEXPIRE', KEYS[5], math.max(redis.call('PTTL', KEYS[4]), 1))
    end
    if not keeps[chosen] then more = math.max(more - 1, 0) end
    credit(chosen)
    last_turn = string.format('%d', turn)
  end
  note_wish(more, last_turn)
  return commit({granted, #granted, {}})
end

local total = redis.call('ZCARD', KEYS[1]) - #over
local share, free = capacity, math.max(capacity - total, 0)
local mine = {audit = audit, more = more, priority = tonumber(ARGV[6]), served = tonumber(last_turn), held = 0}
if not alone then
  local by_name = {[audit] = mine}
  for _, one in ipairs(claimants) do by_name[one.audit] = one end
  claimants[#claimants + 1] = mine
  local left = capacity
  for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    local holder = by_name[string.match(name, '^[^/]*')]
    if not is_over[name] then
      if holder then holder.held = holder.held + 1 else left = left - 1 end
    end
  end
  table.sort(claimants, function(one, other)
    if one.priority ~= other.priority then return one.priority < other.priority end
    if one.served ~= other.served then return one.served < other.served end
    return one.audit < other.audit
  end)
  -- Water-filling, the most urgent first: all of a priority rise together until each has what it wants.
  local first = 1
  while first <= #claimants do
    local last = first
    while claimants[last + 1] and claimants[last + 1].priority == claimants[first].priority do last = last + 1 end
    local thirsty = {}
    for i = first, last do
      claimants[i].share = 0
      if claimants[i].held + claimants[i].more > 0 then thirsty[#thirsty + 1] = claimants[i] end
    end
    while left > 0 and #thirsty > 0 do
      local each = math.max(math.floor(left / #thirsty), 1)
      local still = {}
      for _, one in ipairs(thirsty) do
        local drunk = math.max(math.min(each, left, one.held + one.more - one.share), 0)
        one.share, left = one.share + drunk, left - drunk
        if one.share < one.held + one.more then still[#still + 1] = one end
      end
      thirsty = still
    end
    first = last + 1
  end
  share = mine.share - mine.held
end

local room = math.min(share, free)
for i = 8, #ARGV do
  local shard = ARGV[i]
  if keeps[shard] then
    credit(shard)
  elseif room > 0 then
    credit(shard)
    room, free, more = room - 1, free - 1, math.max(more - 1, 0)
    last_turn = string.format('%d', turn)
  end
end
note_wish(more, last_turn)
local waiting = {}
for _, one in ipairs(claimants) do
  if free > 0 and one ~= mine and one.share > one.held then waiting[#waiting + 1] = one.audit end
end
return commit({granted, 0, waiting})
