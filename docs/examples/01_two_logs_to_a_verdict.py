"""From two logs to a verdict.

Two models answered the same 120 problems; their logs are on disk. Is one of them better? Pair the answers item by
item and ask McNemar's exact test: items that both got right, or both wrong, say nothing of the difference.
"""

from proctor import compare_logs

comparison = compare_logs("logs/a_limit_96.csv", "logs/b_limit_96.csv")
primary = comparison.primary

print(f"{primary.n} items: both right {primary.both}, only A {primary.only_a}, only B {primary.only_b}")
print(f"difference {100 * primary.delta.value:+.1f} points, p = {primary.p_value:.3f}: {comparison.verdict}")
print(comparison.conclusion)

# Prints:
# 120 items: both right 69, only A 24, only B 19
# difference +4.2 points, p = 0.542: inconclusive
# On 120 items, A has 93 right and B 88, a difference of 4.17 points (95 % interval -6.5 to 14.7, p = 0.5424): no
#   difference is shown. This many items show a difference of 15.16 points with 80 % power, and smaller ones less often.
#   All 2 extractors agree (as logged, proctor:numeric): A − B runs from 3.3 to 4.2 points. Without a vote, because too
#   few of these texts give it an answer: proctor:exact. Of the protocols 20 settings may differ, because a log does not
#   record them.
