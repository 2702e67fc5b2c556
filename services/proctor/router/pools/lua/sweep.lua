-- Take back the credits of a stage whose shards are not under way, but for the youngest. One that is to be claimed
-- only later was claimed before the server's clock was put back.
-- Keys: credits claimed
-- Arguments: prefix older_than_ms
-- Rows: shard_id
-- The rows are the shards that are under way. Returns the number of credits that were taken back.
local now, older_than = now_ms(), tonumber(arg.older_than_ms)
local under_way, swept = {}, {}
for i = FIRST, #ARGV do under_way[arg.prefix .. ARGV[i]] = true end
for _, name in ipairs(redis.call('ZRANGE', key.credits, 0, -1)) do
  local age = now - tonumber(redis.call('HGET', key.claimed, name) or 0)
  local is_mine = string.sub(name, 1, #arg.prefix) == arg.prefix
  if is_mine and not under_way[name] and (age >= older_than or age < -older_than) then swept[#swept + 1] = name end
end
write_all('ZREM', key.credits, swept)
write_all('HDEL', key.claimed, swept)
return commit(#swept)
