"""How the replicas of an endpoint are found while an audit runs."""
