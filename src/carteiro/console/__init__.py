"""The console: pages for people, rendered on the server, with ports, views and rights of the API and no own rules."""
