-- An audit wants nothing more of a pool, and holds nothing.
-- KEYS: credits claimed wants   ARGV: audit
local prefix = ARGV[1] .. '/'
redis.call('HDEL', KEYS[3], ARGV[1])
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.sub(name, 1, #prefix) == prefix then
    redis.call('ZREM', KEYS[1], name)
    redis.call('HDEL', KEYS[2], name)
  end
end
return 1
