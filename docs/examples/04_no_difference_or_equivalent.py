"""No difference shown is not the same as no difference.

"Not significant" says that this many items could not tell; equivalence says that they could. Declare beforehand which
difference would not matter, and test against that (two one-sided tests). 120 items are too few for three points, and
the minimum detectable effect says how few.
"""

from proctor import compare_logs

for tolerance in (3, 20):
    comparison = compare_logs("logs/a_limit_96.csv", "logs/b_limit_96.csv", tolerance_points=tolerance)
    tested = comparison.primary.equivalence
    low, high = (100 * bound for bound in tested.interval)
    print(f"within {tolerance} points? 90 % interval {low:.1f} to {high:.1f}, p = {tested.p_value:.3f}")
    print(
        f"  {comparison.verdict}; smallest difference found with 80 % power: {100 * comparison.primary.mde:.1f} points"
    )

# Prints:
# within 3 points? 90 % interval -5.3 to 13.6, p = 0.614
#   inconclusive; smallest difference found with 80 % power: 15.2 points
# within 20 points? 90 % interval -5.3 to 13.6, p = 0.003
#   equivalent; smallest difference found with 80 % power: 15.2 points
