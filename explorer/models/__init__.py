"""Item models: rows of the store as Qt tables show them."""
