-- What every script begins with. A script computes first, and uses `redis.call` for reading alone; what it decides it
-- puts down with `write`, and `commit` does all of it. Before its first write `commit` looks for what could stop it
-- half-way: a key of another type, a command that this user may not run. Too little memory, a full disk and a server
-- that became a replica stop a script at its first write or not at all. So a step that raises has written nothing.

-- Past it a double, which Lua computes with, does not hold every whole number.
local MOST = 9007199254740991
-- Of one command: Lua unpacks no more than 8,000.
local MOST_ARGUMENTS = 2000
local KINDS = {HSET = 'hash', HDEL = 'hash', ZADD = 'zset', ZREM = 'zset', SADD = 'set', SREM = 'set'}
local writes = {}

-- A count as it was handed in or is kept, as a number; nothing is 0.
local function count(text)
  local number = tonumber(text or 0)
  if not number or number < 0 or number ~= math.floor(number) then
    error('no count: ' .. string.sub(tostring(text), 1, 40) .. '; nothing was written')
  end
  return math.min(number, MOST)
end

-- A count and what is added to it, as it is kept. It stays at the most that can be counted.
local function raised(text, by)
  return string.format('%.0f', math.min(count(text) + by, MOST))
end

-- The server's clock in ms: workers' clocks may differ.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function write(...)
  writes[#writes + 1] = {...}
end

-- One command over a list, in as many as it takes; nothing where the list is empty. Pairs are not torn apart.
local function write_all(command, key, arguments)
  for first = 1, #arguments, MOST_ARGUMENTS do
    local last = math.min(first + MOST_ARGUMENTS - 1, #arguments)
    writes[#writes + 1] = {command, key, unpack(arguments, first, last)}
  end
end

local function expire(keys, ttl_s)
  for _, key in ipairs(keys) do write('EXPIRE', key, ttl_s) end
end

-- Do what was put down, or raise before the first of it. Returns the script's answer.
local function commit(answer)
  local looked = {}
  for _, one in ipairs(writes) do
    local command, key = one[1], one[2]
    local name = command .. ' ' .. key
    if not looked[name] then
      looked[name] = true
      local kind = KINDS[command]
      local found = kind and redis.call('TYPE', key).ok
      if kind and found ~= 'none' and found ~= kind then
        return redis.error_reply('WRONGTYPE ' .. key .. ' holds a ' .. found .. ', no ' .. kind .. '; nothing was written')
      end
      -- Redis has had this since 7.0, as has every Valkey.
      if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(one)) then
        return redis.error_reply('NOPERM this user may not run ' .. name .. '; nothing was written')
      end
    end
  end
  for _, one in ipairs(writes) do redis.call(unpack(one)) end
  return answer
end
