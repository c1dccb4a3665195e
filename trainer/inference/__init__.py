"""A trained model in use: opened, kept open, and asked to embed, classify and explain."""
