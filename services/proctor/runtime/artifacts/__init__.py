"""The artifact store: objects under the digest of their content, in a folder or a bucket, and what is made of them."""
