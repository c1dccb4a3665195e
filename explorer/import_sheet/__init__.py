"""The sheet that says what a folder, table or tar holds before anything trains."""

from explorer.import_sheet.sheet import ImportData

__all__ = ["ImportData"]
