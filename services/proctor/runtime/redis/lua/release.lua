-- What a worker has in hand no longer. Left alone where another worker took it up meanwhile.
-- KEYS: held   ARGV: worker, then what it held
local released = {}
for i = 2, #ARGV do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[1] then released[#released + 1] = ARGV[i] end
end
write_all('HDEL', KEYS[1], released)
return commit(1)
