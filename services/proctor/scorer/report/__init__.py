"""The report as a document."""
