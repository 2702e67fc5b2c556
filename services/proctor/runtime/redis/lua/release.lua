-- What a worker has in hand no longer. Left alone where another worker took it up meanwhile.
-- Keys: held
-- Arguments: worker
-- Rows: held
local released = {}
for i = FIRST, #ARGV do
  if redis.call('HGET', key.held, ARGV[i]) == arg.worker then released[#released + 1] = ARGV[i] end
end
write_all('HDEL', key.held, released)
return commit(1)
