"""What a step of continuous integration gets of an audit: test results, and a summary for the pull request."""
