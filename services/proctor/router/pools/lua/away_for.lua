-- For how long the servers of a pool have been away, in ms by the server's clock; nil where they are not.
-- Keys: breaker
local since = redis.call('HGET', key.breaker, 'since')
if not since then return false end
return math.max(now_ms() - tonumber(since), 0)
