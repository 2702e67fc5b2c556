"""What Proctor asks of Kubernetes' API server, and how: nothing, unless a setting says so."""
