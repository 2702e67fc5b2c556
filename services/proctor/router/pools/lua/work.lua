-- Note that a pool has work, and tell which others have. What was noted longer ago than `fresh_ms`, or is to be noted
-- only as much later, before the server's clock was put back, is nobody's any more.
-- Keys: working
-- Arguments: pool wanted fresh_ms
-- `wanted` are the packs that the pool has outstanding or could have; with 0 nothing is noted, and nothing written.
-- Returns a flat list of pool, wanted; without the pool itself.
local now, fresh_ms = now_ms(), tonumber(arg.fresh_ms)
local others, over = {}, {}
local noted = redis.call('HGETALL', key.working)
for i = 1, #noted, 2 do
  local wanted, at = string.match(noted[i + 1], '^(%d+) (%d+)$')
  if noted[i] ~= arg.pool then
    if math.abs(now - tonumber(at)) < fresh_ms then
      others[#others + 1] = noted[i]
      others[#others + 1] = wanted
    else
      over[#over + 1] = noted[i]
    end
  end
end
if arg.wanted == '0' then return others end
write_all('HDEL', key.working, over)
write('HSET', key.working, arg.pool, string.format('%s %.0f', arg.wanted, now))
write('PEXPIRE', key.working, fresh_ms)
return commit(others)
