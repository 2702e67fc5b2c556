"""Commands over logs and tables that are there already: compare, truncation, noise, power."""
