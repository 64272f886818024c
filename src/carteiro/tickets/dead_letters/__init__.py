"""The dead letter topic: the format of its records, and the producer that writes them."""
