"""One module a version. It is never changed once it was released: stores have been made by it."""
