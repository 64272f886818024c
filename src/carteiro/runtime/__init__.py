"""Small parts that several rooms share inside a process: batcher, fair thread, caches, polling, one message."""
