-- Begin a try, unless enough of them came to nothing: those that raised, and those that began so long ago that whoever
-- made them must be dead.
-- Keys: tries
-- Arguments: id grace_ms most ttl_ms
-- Returns {1 where it may be tried, tries that came to nothing, the last error among them or ''}. Where it may not, they
-- are forgotten.
local now, grace_ms, most = now_ms(), tonumber(arg.grace_ms), tonumber(arg.most)
local vain, cause = 0, ''
local known = redis.call('HGETALL', key.tries)
for i = 1, #known, 2 do
  if known[i] == 'cause' then
    cause = known[i + 1]
  elseif now - count(known[i + 1]) >= grace_ms then
    vain = vain + 1
  end
end
if vain >= most then
  write('DEL', key.tries)
  return commit({0, vain, cause})
end
write('HSET', key.tries, arg.id, now)
write('PEXPIRE', key.tries, arg.ttl_ms)
return commit({1, vain, cause})
