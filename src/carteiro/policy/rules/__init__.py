"""The meanings of provider answers, as data; `classify` looks them up, and the reference page lists them.

Sources: RFC 5321 and its extensions for reply codes, RFC 3463 and its registry for enhanced codes,
documentation of large receivers and filters. Names of errors are in the providers' folders.
"""
