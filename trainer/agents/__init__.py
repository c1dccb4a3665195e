"""A server of the Model Context Protocol over the commands that print JSON; needs the extra `mcp`."""
