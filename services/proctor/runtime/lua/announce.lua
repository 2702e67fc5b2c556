-- Note that a worker lives, and clear away those that were silent for so long that nobody asks for them any more.
-- Time is the server's: workers' clocks may differ.
-- KEYS: seen workers   ARGV: ttl_s worker entry kept_ms
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
redis.call('ZADD', KEYS[1], now_ms, ARGV[2])
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms - ARGV[4])) do
  redis.call('ZREM', KEYS[1], worker)
  redis.call('HDEL', KEYS[2], worker)
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
