-- Take back the credits of a stage whose shards are not under way, but for the youngest. One that is to be claimed
-- only later was claimed before the server's clock was put back.
-- KEYS: credits claimed   ARGV: prefix older_than_ms, then the ids of the shards that are under way
-- Returns the number of credits that were taken back.
local now, older_than = now_ms(), tonumber(ARGV[2])
local under_way, swept = {}, {}
for i = 3, #ARGV do under_way[ARGV[1] .. ARGV[i]] = true end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local age = now - tonumber(redis.call('HGET', KEYS[2], name) or 0)
  if string.sub(name, 1, #ARGV[1]) == ARGV[1] and not under_way[name] and (age >= older_than or age < -older_than) then
    swept[#swept + 1] = name
  end
end
write_all('ZREM', KEYS[1], swept)
write_all('HDEL', KEYS[2], swept)
return commit(#swept)
