"""Commands over evaluations of one's own."""
