"""The desktop application: explore and compare what the runs of `trainer` learned."""
