"""What charts compute: the module of a chart has its name."""
