"""What can be studied without an audit: plans, comparisons, truncation, calibration. The public Python API."""
