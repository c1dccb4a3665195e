"""`trainer places`: other computers that train runs, as the user's own settings have them."""

GROUP = "Train"
HELP = "name other computers that train runs: by ssh, SLURM or Ray"
