"""A run that was cut at a token limit cannot be compared.

Both logs are of the models of the first example, but A's answers were cut after 24 words. B now looks better by more
than 20 points, with a p-value below 0.001, and nothing about either model has changed.
"""

from proctor import compare_logs

comparison = compare_logs("logs/a_limit_24.csv", "logs/b_limit_96.csv")

print(f"{100 * comparison.primary.delta.value:+.1f} points, p = {comparison.primary.p_value:.4f}")
print(f"cut answers: A {comparison.truncation.a}, B {comparison.truncation.b} of {comparison.truncation.n}")
print(comparison.verdict)
print(comparison.conclusion)

# Prints:
# -22.5 points, p = 0.0006
# cut answers: A 37, B 0 of 120
# invalid
# The comparison is invalid because of truncation: 30.83 % of A's answers and 0 % of B's were cut at a token limit (by
#   finish reasons, p < 0.0001), so a difference in accuracy may be one of the limit. Run A again with a higher one.
