-- Entries of the workers that were heard of within `silence_ms`. One that was heard of as much later than now was heard
-- of before the server's clock was put back: whether it lives, its next word will tell.
-- Keys: seen workers
-- Arguments: silence_ms
local now, silence_ms, entries = now_ms(), tonumber(arg.silence_ms), {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key.seen, '(' .. now - silence_ms, now + silence_ms)) do
  local entry = redis.call('HGET', key.workers, worker)
  if entry then entries[#entries + 1] = entry end
end
return entries
