"""The ports that are the same on every SQL store: Python once, statements by the same names in each dialect."""
