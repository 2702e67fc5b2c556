-- The credits of an audit that have not ended, and how long it has had them.
-- Keys: credits claimed
-- Arguments: prefix
-- Returns a flat list of name without its prefix, age in ms.
local now = now_ms()
local held = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', key.credits, '(' .. string.format('%d', now), '+inf')) do
  if string.sub(name, 1, #arg.prefix) == arg.prefix then
    held[#held + 1] = string.sub(name, #arg.prefix + 1)
    held[#held + 1] = math.max(now - tonumber(redis.call('HGET', key.claimed, name) or now), 0)
  end
end
return held
