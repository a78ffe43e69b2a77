"""Who offers what: contributions by owner, and frozen views of them."""
