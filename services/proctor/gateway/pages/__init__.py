"""The dashboard: pages that the gateway renders, for people with a browser."""
