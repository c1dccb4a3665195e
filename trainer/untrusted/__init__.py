"""Files, names, texts and programs from outside, used only where that is safe. Imports no torch."""
