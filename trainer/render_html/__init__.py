"""Maps that a browser draws: in a page that needs no server, and in notebooks."""
