"""Which run trains when and where: the queue, detached trainers, and how busy the computer is. Imports no torch."""
