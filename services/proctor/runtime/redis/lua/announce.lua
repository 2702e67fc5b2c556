-- Note that a worker lives, and clear away those that were silent for so long that nobody asks for them any more, or
-- that were heard of only later than now, before the server's clock was put back.
-- Keys: seen workers
-- Arguments: ttl_s worker entry kept_ms
local now, kept_ms = now_ms(), tonumber(arg.kept_ms)
local silent = redis.call('ZRANGEBYSCORE', key.seen, '-inf', now - kept_ms)
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key.seen, string.format('%.0f', now + kept_ms), '+inf')) do
  silent[#silent + 1] = worker
end
write_all('ZREM', key.seen, silent)
write_all('HDEL', key.workers, silent)
write('ZADD', key.seen, now, arg.worker)
write('HSET', key.workers, arg.worker, arg.entry)
expire(KEYS, arg.ttl_s)
return commit(1)
