"""What can be seen from outside: log lines."""
