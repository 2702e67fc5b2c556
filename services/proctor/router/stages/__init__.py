"""The stages of an audit: parts that ask a model. One module each; `registry` says which an audit has."""
