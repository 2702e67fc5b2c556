"""`proctor audit`: plan an audit, run it, print what came of it."""
