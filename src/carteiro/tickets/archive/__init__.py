"""The archive of dead tickets in MongoDB, and their redrive."""
