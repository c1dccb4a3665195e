"""Other computers that train runs: which they are, how they are reached, and how a run there is mirrored here.

A place is named in the user's own settings, never in a workspace. The run that trains there has a workspace of its own;
this one mirrors its folder and replays it. Imports no torch.
"""
