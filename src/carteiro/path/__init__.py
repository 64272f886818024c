"""The path of a message, one module per stage; sorted by name they stand in the order of travel.

accept → claim → confirm → declare → deliver → judge → settle → track
"""
