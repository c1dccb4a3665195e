"""Small reusable widgets that do not depend on runs, the store or the selection."""
