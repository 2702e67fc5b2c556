-- An audit wants nothing more of a pool, and holds nothing.
-- KEYS: credits claimed wants   ARGV: audit
local prefix, held = ARGV[1] .. '/', {}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.sub(name, 1, #prefix) == prefix then held[#held + 1] = name end
end
write('HDEL', KEYS[3], ARGV[1])
write_all('ZREM', KEYS[1], held)
write_all('HDEL', KEYS[2], held)
return commit(1)
