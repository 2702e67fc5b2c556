-- The servers of a pool say that they are ready. That is no answer to a prompt: where they were away a shard may probe
-- now, and the outage counts from now on.
-- Keys: breaker
-- Arguments: ttl_s first_wait_ms
local now = now_ms()
if redis.call('EXISTS', key.breaker) == 0 then return 0 end
write('HSET', key.breaker, 'since', now, 'until', now, 'wait', arg.first_wait_ms)
expire(KEYS, arg.ttl_s)
return commit(1)
