-- Note what a worker has taken in hand. That is a sign of life too: it may come before the first announcement.
-- KEYS: seen held   ARGV: ttl_s worker, then what it holds
local held = {}
for i = 3, #ARGV do
  held[#held + 1] = ARGV[i]
  held[#held + 1] = ARGV[2]
end
write('ZADD', KEYS[1], now_ms(), ARGV[2])
write_all('HSET', KEYS[2], held)
expire(KEYS, ARGV[1])
return commit(1)
