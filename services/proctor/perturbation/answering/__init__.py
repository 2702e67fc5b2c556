"""The answering check: which rewordings are held for reading, by what solvers answered to them."""
