-- Give credits of a pool to shards of an audit, as far as its share goes; while the servers are away, to one that is to
-- probe.
-- Keys: credits claimed wants breaker probes suspects
-- Arguments: ttl_s prefix audit wanted capacity priority lease_ms
-- Rows: shard_id
-- Parts: credits wishes fair_share breaker
-- A credit's name is prefix .. shard_id.
-- Returns: the shard ids that hold a credit; 1 when the one that does is to probe; the other audits that could have
-- more now; and how many shards of all audits are outstanding or wanted.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- In microseconds: who was served last is told apart from who was served in the same millisecond.
local turn = time[1] * 1000000 + time[2]
local capacity, lease_ms = tonumber(arg.capacity), tonumber(arg.lease_ms)
local ends = now + lease_ms
local ttl_s = math.max(tonumber(arg.ttl_s), math.ceil(lease_ms / 1000))

tidy_credits(now, ends)
local keeps, n_kept = {}, 0
for i = FIRST, #ARGV do
  if holds(arg.prefix .. ARGV[i]) then keeps[ARGV[i]], n_kept = true, n_kept + 1 end
end
local others, last_turn = read_wishes(arg.audit, now, turn, lease_ms)
local total = outstanding()
local free = math.max(capacity - total, 0)
-- What the audit wants beyond what it holds.
local more = math.max(tonumber(arg.wanted) - n_kept, 0)

local granted = {}
local function grant(shard)
  give(arg.prefix .. shard, now, ends)
  granted[#granted + 1] = shard
  if not keeps[shard] then total, more = total + 1, math.max(more - 1, 0) end
end

local function done(probing, waiting, wanted)
  note_wish(arg.audit, more, arg.priority, ends, last_turn)
  expire({key.credits, key.claimed, key.wants}, ttl_s)
  return commit({granted, probing, waiting, wanted})
end

local breaker = look_at_breaker()
if breaker then
  local probing
  if may_probe(breaker, now, breaker.probe and not holds(breaker.probe)) then
    local names, shards = {}, {}
    for i = FIRST, #ARGV do
      if free > 0 or keeps[ARGV[i]] then
        names[#names + 1], shards[#shards + 1] = arg.prefix .. ARGV[i], ARGV[i]
      end
    end
    local place = probe_of(names)
    if place then
      probing = shards[place]
      begin_probe(breaker, now, names[place])
    end
  else
    -- The probing shard is granted again: its first grant may have died with whoever claimed it.
    for i = FIRST, #ARGV do
      if keeps[ARGV[i]] and arg.prefix .. ARGV[i] == breaker.probe then probing = ARGV[i] end
    end
  end
  if probing then
    grant(probing)
    last_turn = string.format('%d', turn)
  end
  -- Whatever is wanted, no more than a probe could be had.
  local wants_probe = more > 0 or #others > 0
  return done(#granted, {}, math.max(total, wants_probe and 1 or 0))
end

local room, claimants = free, others
if #others > 0 then
  local mine = {audit = arg.audit, more = more, priority = tonumber(arg.priority), served = tonumber(last_turn)}
  claimants[#claimants + 1] = mine
  local held, left = held_by_audit(), capacity - total
  for _, one in ipairs(claimants) do
    one.held = held[one.audit] or 0
    left = left + one.held
  end
  fair_shares(claimants, left)
  room = math.min(mine.share - mine.held, free)
end
for i = FIRST, #ARGV do
  local shard = ARGV[i]
  if keeps[shard] then
    grant(shard)
  elseif room > 0 then
    grant(shard)
    room, free = room - 1, free - 1
    last_turn = string.format('%d', turn)
  end
end
local waiting, wanted = {}, total + more
for _, one in ipairs(claimants) do
  if one.audit ~= arg.audit then
    wanted = wanted + one.more
    if free > 0 and one.share > one.held then waiting[#waiting + 1] = one.audit end
  end
end
return done(0, waiting, wanted)
