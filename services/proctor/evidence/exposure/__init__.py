"""What a search of training data says of an audit's items and figures."""
