"""Small reusable parts of the window; none of them knows a run, a store or a selection."""
