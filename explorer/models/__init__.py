"""Item models that show rows of the store in Qt tables."""
