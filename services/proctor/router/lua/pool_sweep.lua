-- Take back the credits of a stage whose shards are not under way, but for the youngest.
-- KEYS: credits claimed   ARGV: prefix older_than_ms, then the ids of the shards that are under way
-- Returns the number of credits that were taken back.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local under_way, swept = {}, 0
for i = 3, #ARGV do under_way[ARGV[1] .. ARGV[i]] = true end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.sub(name, 1, #ARGV[1]) == ARGV[1] and not under_way[name]
      and now - tonumber(redis.call('HGET', KEYS[2], name) or 0) >= tonumber(ARGV[2]) then
    redis.call('ZREM', KEYS[1], name)
    redis.call('HDEL', KEYS[2], name)
    swept = swept + 1
  end
end
return swept
