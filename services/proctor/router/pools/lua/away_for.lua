-- For how long the servers of a pool have been away, in ms by the server's clock; nil where they are not.
-- KEYS: breaker   ARGV: (none)
local since = redis.call('HGET', KEYS[1], 'since')
if not since then return false end
return math.max(now_ms() - tonumber(since), 0)
