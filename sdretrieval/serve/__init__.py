"""An index served: the page, REST and MCP, over the same answers."""
