"""What the window remembers: what is selected now, and its settings between two starts."""
