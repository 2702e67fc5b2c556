-- Shards whose lease has run out, each with the attempt that ran it: their message or their worker is lost. A lease
-- that has longer to run than a lease is long is of before the server's clock was put back: it begins again now.
-- Keys: leases attempts
-- Arguments: lease_ms
-- Returns a flat list of shard_id, attempt; 0 where the number of the attempt was lost.
local now = now_ms()
local longest = now + count(arg.lease_ms)
local late, shortened = {}, {}
for _, shard in ipairs(redis.call('ZRANGEBYSCORE', key.leases, '-inf', now)) do
  late[#late + 1] = shard
  late[#late + 1] = redis.call('HGET', key.attempts, shard) or '0'
end
for _, shard in ipairs(redis.call('ZRANGEBYSCORE', key.leases, '(' .. string.format('%.0f', longest), '+inf')) do
  shortened[#shortened + 1] = longest
  shortened[#shortened + 1] = shard
end
write_all('ZADD', key.leases, shortened)
return commit(late)
