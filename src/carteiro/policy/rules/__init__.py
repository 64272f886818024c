"""What the answers of providers mean, as data; `classify` looks them up, and the reference page lists them.

Sources: RFC 5321 and its extensions for reply codes, RFC 3463 and the registry that grew from it for
enhanced ones, what large receivers and filters document of their replies. Names of errors are in providers' folders.
"""
