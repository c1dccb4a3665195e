"""Pages that a browser draws: maps, also in notebooks, reports of runs, verdicts of experiments."""
