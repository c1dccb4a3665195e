"""Control runs from the window: start, stop, queue and poll them."""
