"""The published calibration: simulated audits, what the statistics do on them, and whether the claims hold.

`studies` says what is simulated, `running` runs it, `table` keeps the counts, `judging` holds the claims against them,
`document` and `plots` show them. `scripts/calibrate_evidence.py` is the command.
"""
