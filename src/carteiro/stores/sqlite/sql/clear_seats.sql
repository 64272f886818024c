-- Drops every row: what they are about is kept elsewhere, or is made again.
DELETE FROM seats;
