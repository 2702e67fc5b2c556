"""Traces: what was done for an audit, by which service and for how long, sent by OTLP where somebody asks for it."""
