"""A run that was cut at a token limit cannot be compared.

Both logs are of the models of the first example, but A's answers were cut after 24 words. The logs record their limits
(max_tokens), so the comparison is refused: two protocols, two measures. Made all the same, it finds B better by more
than 20 points, with a p-value below 0.001, and nothing about either model has changed; the cut answers give it away.
"""

from proctor import ProtocolsDifferError, compare_logs

logs = ("logs/a_limit_24.csv", "logs/b_limit_96.csv")

try:
    compare_logs(*logs)
except ProtocolsDifferError as refusal:
    print(refusal)

comparison = compare_logs(*logs, across_protocols=True)

print(f"{100 * comparison.primary.delta.value:+.1f} points, p = {comparison.primary.p_value:.4f}")
print(f"cut answers: A {comparison.truncation.a}, B {comparison.truncation.b} of {comparison.truncation.n}")
print(comparison.verdict)
print(comparison.conclusion)

# Prints:
# logs/a_limit_24.csv and logs/b_limit_96.csv were made under different protocols, so a difference between their scores
#   need not be one between the runs: decoding_policy.max_tokens is 24 in A and 96 in B. Make them again under one
#   protocol, or compare them all the same with --across-protocols (across_protocols=True)
# -22.5 points, p = 0.0006
# cut answers: A 37, B 0 of 120
# invalid
# The comparison is invalid because of truncation: 30.83 % of A's answers and 0 % of B's were cut at a token limit (by
#   finish reasons, p < 0.0001), so a difference in accuracy may be one of the limit. Run A again with a higher one. The
#   protocols differ (decoding_policy.max_tokens is 24 in A and 96 in B), so what is found may be theirs and not the
#   runs'. Of the protocols 20 settings may differ, because a log does not record them.
