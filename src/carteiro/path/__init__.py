"""The path of a message, one module per stage; their names sort in the order of the stages.

accept → claim → confirm → declare → deliver → judge → settle → track
"""
