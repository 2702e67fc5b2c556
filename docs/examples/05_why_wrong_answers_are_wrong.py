"""Which wrong answers are the model's, and which the protocol's?

A score counts answers that were cut, that the extractor could not read, and that a slip in arithmetic spoilt, in one
heap with answers whose reasoning was wrong. Deterministic predicates sort them; each label comes with the words that
decided, so that anybody can check it by hand.
"""

from collections import Counter

from proctor import read_log, triage

(run,) = read_log("logs/b_limit_96.csv")
sorted_out = {
    row.item_id: triage(row.question, row.expected, row.text, truncated=row.truncated, extracted=row.answer)
    for row in run.answers
    if not row.correct
}

for label, count in Counter(one.label for one in sorted_out.values()).most_common():
    item, shown = next((item, one) for item, one in sorted_out.items() if one.label is label)
    print(f"{count:2} {label}, e.g. {item}: {shown.evidence}")

# Prints:
# 20 reasoning, e.g. problem-0: concluding sentence: 63
#  8 stepwise, e.g. problem-56: 12 * 37 = 454; executed again, the answer is 424
#  3 self_correction_regress, e.g. problem-6: e away, 105 - 17 = 88 are left. The answer is 88. Wait, that is not right:
#   105 + 17
#  1 extraction, e.g. problem-27: answer is: 286
