-- Wishes: what each audit wants of a pool beyond what it holds, how urgent it is, and when it was last served.
-- Keys: wants
-- Gives: read_wishes, note_wish. A claimant is {audit, more, priority, served}: numbers, but for the audit.
-- Holds: a wish is as old as two lease times at most; an audit that wants nothing has none.

-- The claimants but for `audit`, and when that one was last served ('0': never). `turn` is now in µs.
local function read_wishes(audit, now, turn, lease_ms)
  local others, last_turn = {}, '0'
  local wishes = redis.call('HGETALL', key.wants)
  for i = 1, #wishes, 2 do
    local wish, priority, until_ms, served = string.match(wishes[i + 1], '^(%d+) (%-?%d+) (%d+) (%d+)$')
    -- Served in the future is served before the server's clock was put back: it is as good as never.
    if tonumber(served) > turn then served = '0' end
    if wishes[i] == audit then
      last_turn = served
    elseif tonumber(until_ms) <= now or tonumber(until_ms) > now + 2 * lease_ms then
      write('HDEL', key.wants, wishes[i])
    else
      others[#others + 1] =
        {audit = wishes[i], more = tonumber(wish), priority = tonumber(priority), served = tonumber(served)}
    end
  end
  return others, last_turn
end

-- Note what an audit still wants, until `ends`; with its last turn, so that whoever was served longest ago is first.
local function note_wish(audit, more, priority, ends, last_turn)
  if more > 0 then
    write('HSET', key.wants, audit, string.format('%d %s %d %s', more, priority, ends, last_turn))
  else
    write('HDEL', key.wants, audit)
  end
end
