"""The ledger: which shards of an audit's stages are planned, queued, leased, done or dead."""
