-- Note what a worker has taken in hand. That is a sign of life too: it may come before the first announcement.
-- Keys: seen held
-- Arguments: ttl_s worker
-- Rows: held
local held = {}
for i = FIRST, #ARGV do
  held[#held + 1] = ARGV[i]
  held[#held + 1] = arg.worker
end
write('ZADD', key.seen, now_ms(), arg.worker)
write_all('HSET', key.held, held)
expire(KEYS, arg.ttl_s)
return commit(1)
