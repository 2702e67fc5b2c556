-- The fair share: how a number of credits is divided among claimants. Reads and writes nothing of Redis.
-- Gives: fair_shares.
-- Holds: shares sum to at most `credits`; nobody's is more than it holds and wants; of those of a priority nobody's is
-- larger than that of another who wants more, but for the one credit by which a division does not come out even; nobody
-- has any while a more urgent one wants more.

-- Set `share` of each of the claimants, {audit, more, priority, served, held}, and put them in their order: the most
-- urgent first, of these the one that was served longest ago.
local function fair_shares(claimants, credits)
  table.sort(claimants, function(one, other)
    if one.priority ~= other.priority then return one.priority < other.priority end
    if one.served ~= other.served then return one.served < other.served end
    return one.audit < other.audit
  end)
  -- Water-filling: all of a priority rise together until each has what it wants.
  local left, first = credits, 1
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
end
