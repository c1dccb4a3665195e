"""The import dialog shows the contents of a folder, table or tar before training; it is imported on first use."""
