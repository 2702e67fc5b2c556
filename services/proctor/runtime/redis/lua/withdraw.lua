-- A worker leaves.
-- KEYS: seen workers   ARGV: worker
write('ZREM', KEYS[1], ARGV[1])
write('HDEL', KEYS[2], ARGV[1])
return commit(1)
