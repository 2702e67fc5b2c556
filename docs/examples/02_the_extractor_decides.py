"""The same texts, read by two extractors, give two verdicts.

lm-evaluation-harness grades every text once for each of its filters. `strict-match` wants the answer behind `####`;
one of these models seldom writes that. What looks like a better model is a better-formatted one. Proctor grades the
same texts again with extractors of its own; one that can read next to nothing has no vote.
"""

from proctor import compare_logs

comparison = compare_logs("logs/a.jsonl", "logs/b.jsonl")

for one in comparison.extractors:
    vote = "" if one.votes else " (no vote)"
    print(f"{one.extractor}: {100 * one.delta.value:+.1f} points, {one.unread_b} of B's answers not read{vote}")
print(comparison.verdict)
print(comparison.conclusion)

# Prints:
# strict-match: +35.0 points, 59 of B's answers not read
# flexible-extract: +4.2 points, 0 of B's answers not read
# proctor:numeric: +3.3 points, 0 of B's answers not read
# proctor:exact: +0.0 points, 120 of B's answers not read (no vote)
# extractor_decides
# The extractor decides, not the runs: under strict-match A is better than B: A − B is 35 points (95 % interval 23.5 to
#   45.4, p < 0.0001), and it found no answer in 3 of A's texts and 59 of B's; under flexible-extract A has 93 right and
#   B 88, a difference of 4.17 points (95 % interval -6.5 to 14.7, p = 0.5424); under proctor:numeric A has 93 right and
#   B 89, a difference of 3.33 points (95 % interval -7.2 to 13.8, p = 0.6440). Over these extractors A − B runs from
#   3.3 to 35.0 points. Find out which extractor reads these answers rightly before saying which run is better. The logs
#   do not both give finish reasons, or token counts and their limit, so whether answers were cut is not known. Of the
#   protocols 10 settings may differ, because a log does not record them.
