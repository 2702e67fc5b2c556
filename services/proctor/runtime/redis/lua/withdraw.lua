-- A worker leaves.
-- Keys: seen workers
-- Arguments: worker
write('ZREM', key.seen, arg.worker)
write('HDEL', key.workers, arg.worker)
return commit(1)
