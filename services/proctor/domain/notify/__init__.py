"""Who is told of a decision, and in which words."""
