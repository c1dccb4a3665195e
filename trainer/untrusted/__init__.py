"""Safe handling of untrusted files, names, texts and programs. Imports no torch."""
