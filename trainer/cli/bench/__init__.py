"""`trainer bench`: the measurements that the READMEs quote. One module a subject."""

GROUP = "Maintain"
HELP = "make the measurements that the READMEs quote"
