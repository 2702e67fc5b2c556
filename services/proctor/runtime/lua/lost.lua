-- What is in hand of workers that were not heard of within `silence_ms`, or that have left.
-- KEYS: seen held   ARGV: silence_ms
local now = redis.call('TIME')
local since_ms = now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[1]
local living, lost = {}, {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. since_ms, '+inf')) do living[worker] = true end
local held = redis.call('HGETALL', KEYS[2])
for i = 1, #held, 2 do
  if not living[held[i + 1]] then lost[#lost + 1] = held[i] end
end
return lost
