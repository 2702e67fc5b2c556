"""The certificate under which the API server knows the webhook: made, published, and renewed in time."""
