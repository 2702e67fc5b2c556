"""What `proctor doctor` looks at: what is installed here, and what the settings point to."""
