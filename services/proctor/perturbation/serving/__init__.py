"""The engine behind gRPC: streams with bounded memory, limits, health and reflection."""
