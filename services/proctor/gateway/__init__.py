"""The gateway: audits submitted, watched and steered, from this machine or from another over gRPC."""
