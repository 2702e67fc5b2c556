-- Note that a worker lives, and clear away those that were silent for so long that nobody asks for them any more, or
-- that were heard of only later than now, before the server's clock was put back.
-- KEYS: seen workers   ARGV: ttl_s worker entry kept_ms
local now, kept_ms = now_ms(), tonumber(ARGV[4])
local silent = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - kept_ms)
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', now + kept_ms), '+inf')) do
  silent[#silent + 1] = worker
end
write_all('ZREM', KEYS[1], silent)
write_all('HDEL', KEYS[2], silent)
write('ZADD', KEYS[1], now, ARGV[2])
write('HSET', KEYS[2], ARGV[2], ARGV[3])
expire(KEYS, ARGV[1])
return commit(1)
