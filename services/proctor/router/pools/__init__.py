"""Pools: what is outstanding to the servers behind an endpoint, and how shards are sized for them."""
