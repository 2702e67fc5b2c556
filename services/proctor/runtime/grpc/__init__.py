"""What the gRPC servers share: calls, tokens, messages from strangers, health."""
