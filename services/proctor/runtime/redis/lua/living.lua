-- Entries of the workers that were heard of within `silence_ms`. One that was heard of as much later than now was heard
-- of before the server's clock was put back: whether it lives, its next word will tell.
-- KEYS: seen workers   ARGV: silence_ms
local now, silence_ms, entries = now_ms(), tonumber(ARGV[1]), {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now - silence_ms, now + silence_ms)) do
  local entry = redis.call('HGET', KEYS[2], worker)
  if entry then entries[#entries + 1] = entry end
end
return entries
