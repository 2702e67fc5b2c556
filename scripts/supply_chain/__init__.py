"""What the images install: which extras, their pinned requirements, and where those stand."""
