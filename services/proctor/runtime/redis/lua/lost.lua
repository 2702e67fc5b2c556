-- What is in hand of workers that were not heard of within `silence_ms` (nor as much later than now, before the
-- server's clock was put back), or that have left.
-- Keys: seen held
-- Arguments: silence_ms
local now, silence_ms, living, lost = now_ms(), tonumber(arg.silence_ms), {}, {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key.seen, '(' .. now - silence_ms, now + silence_ms)) do
  living[worker] = true
end
local held = redis.call('HGETALL', key.held)
for i = 1, #held, 2 do
  if not living[held[i + 1]] then lost[#lost + 1] = held[i] end
end
return lost
