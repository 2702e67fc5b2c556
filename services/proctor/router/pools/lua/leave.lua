-- An audit wants nothing more of a pool, and holds nothing.
-- Keys: credits claimed wants
-- Arguments: audit
local prefix, held = arg.audit .. '/', {}
for _, name in ipairs(redis.call('ZRANGE', key.credits, 0, -1)) do
  if string.sub(name, 1, #prefix) == prefix then held[#held + 1] = name end
end
write('HDEL', key.wants, arg.audit)
write_all('ZREM', key.credits, held)
write_all('HDEL', key.claimed, held)
return commit(1)
