"""Selection of mails in the sandbox's inbox, the same on every store."""

from carteiro.model import InboxEntry, InboxFilter


def is_wanted(entry: InboxEntry, wanted: InboxFilter) -> bool:
    """True if the filter admits the mail."""
    return (
        wanted.tenant in {None, entry.tenant}
        and wanted.message in {None, entry.message}
        and (wanted.since is None or entry.at >= wanted.since)
        and (wanted.to is None or entry.to.casefold() == wanted.to.casefold())
        and (wanted.subject is None or wanted.subject.casefold() in entry.subject.casefold())
    )
