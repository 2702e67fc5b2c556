-- What is in hand of workers that were not heard of within `silence_ms` (nor as much later than now, before the
-- server's clock was put back), or that have left.
-- KEYS: seen held   ARGV: silence_ms
local now, silence_ms, living, lost = now_ms(), tonumber(ARGV[1]), {}, {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now - silence_ms, now + silence_ms)) do
  living[worker] = true
end
local held = redis.call('HGETALL', KEYS[2])
for i = 1, #held, 2 do
  if not living[held[i + 1]] then lost[#lost + 1] = held[i] end
end
return lost
