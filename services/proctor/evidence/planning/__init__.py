"""What an audit could find and how it would be decided, before it runs: simulated families and the gate on them."""
