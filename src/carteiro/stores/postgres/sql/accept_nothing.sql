-- Fails wherever an accept would: on a server that cannot be written, for a role that may not, while a move is under way.
DELETE FROM carteiro.messages WHERE false
