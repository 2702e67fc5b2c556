-- Note what a worker has taken in hand. That is a sign of life too: it may come before the first announcement.
-- KEYS: seen held   ARGV: ttl_s worker, then what it holds
local now = redis.call('TIME')
redis.call('ZADD', KEYS[1], now[1] * 1000 + math.floor(now[2] / 1000), ARGV[2])
for i = 3, #ARGV do
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[2])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
