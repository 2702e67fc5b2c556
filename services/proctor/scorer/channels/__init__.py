"""Evidence channels: from graded rows to what a report says."""
