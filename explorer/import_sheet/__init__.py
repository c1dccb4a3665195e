"""The sheet that says what a folder, table or tar holds before anything trains. Imports nothing before it is opened."""
