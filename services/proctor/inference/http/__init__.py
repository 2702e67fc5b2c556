"""Backends over HTTP: OpenAI-compatible servers, the article's contract, and what is believed of replies."""
