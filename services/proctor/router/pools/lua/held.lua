-- The credits of an audit that have not ended, and how long it has had them.
-- KEYS: credits claimed   ARGV: prefix
-- Returns a flat list of name without its prefix, age in ms.
local now = now_ms()
local held = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%d', now), '+inf')) do
  if string.sub(name, 1, #ARGV[1]) == ARGV[1] then
    held[#held + 1] = string.sub(name, #ARGV[1] + 1)
    held[#held + 1] = math.max(now - tonumber(redis.call('HGET', KEYS[2], name) or now), 0)
  end
end
return held
