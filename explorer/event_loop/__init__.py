"""The GUI thread's event loop: work off it and back, work spread over its iterations, its stalls and its errors."""
