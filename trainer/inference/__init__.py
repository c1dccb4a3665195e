"""A trained model in use: opened, cached, and used to embed, classify and explain."""
