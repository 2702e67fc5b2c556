-- Begin a try, unless enough of them came to nothing: those that raised, and those that began so long ago that whoever
-- made them must be dead.
-- KEYS: tries   ARGV: id, grace_ms, most, ttl_ms
-- Returns {1 where it may be tried, tries that came to nothing, the last error among them or ''}. Where it may not, they
-- are forgotten.
local now, grace_ms, most = now_ms(), tonumber(ARGV[2]), tonumber(ARGV[3])
local vain, cause = 0, ''
local known = redis.call('HGETALL', KEYS[1])
for i = 1, #known, 2 do
  if known[i] == 'cause' then
    cause = known[i + 1]
  elseif now - count(known[i + 1]) >= grace_ms then
    vain = vain + 1
  end
end
if vain >= most then
  write('DEL', KEYS[1])
  return commit({0, vain, cause})
end
write('HSET', KEYS[1], ARGV[1], now)
write('PEXPIRE', KEYS[1], ARGV[4])
return commit({1, vain, cause})
