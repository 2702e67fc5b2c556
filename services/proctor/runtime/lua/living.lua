-- Entries of the workers that were heard of within `silence_ms`.
-- KEYS: seen workers   ARGV: silence_ms
local now = redis.call('TIME')
local since_ms = now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[1]
local entries = {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. since_ms, '+inf')) do
  local entry = redis.call('HGET', KEYS[2], worker)
  if entry then entries[#entries + 1] = entry end
end
return entries
