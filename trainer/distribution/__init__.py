"""What comes with this program and what it can fetch: libraries with their licenses, published models."""
