"""Phrases of filters in front of receivers, and of relays."""

from carteiro.policy.rules.phrases import phrases
from carteiro.policy.rules.words import System, rules

GATEWAYS: tuple[System, ...] = (
    System(
        "proofpoint",
        ("pphosted.com", "ppe-hosted.com", "proofpoint.com", "emailsrvr.com"),
        phrases("proofpoint com | pphosted com | dnsbl & proofpoint | support proofpoint"),
        rules("""
            source_blocked BLOCKED_SOURCE:
                blocked see | ipcheck | blocked by proofpoint | dynamic reputation | reputation
        """),
    ),
    System(
        "mimecast",
        ("mimecast.com", "mimecast.co.za", "mimecast-offshore.com"),
        phrases("mimecast"),
        rules("""
            greylisted DESTINATION_LATER: {resource,resources are} temporarily unavailable
            network_refused BAD_MESSAGE: host network not allowed
            network_disliked BLOCKED_SOURCE: ct ip
            sender OUR_SENDER: anti spoofing | envelope blocked & sender
            content BAD_MESSAGE:
                signature detected | administrative prohibition | security policies | rejected by header
            recipient_policy REFUSED_RECIPIENT:
                local ct policy | {envelope,email address} blocked | block policy | blocked sender
            rate TOO_FAST: outbound thread limit
            account OUR_ACCOUNT: account {inbounds disabled,service is temporarily} | journal
        """),
    ),
    System(
        "barracuda",
        ("barracudanetworks.com",),
        phrases("barracuda | barracudanetworks | barracudacentral"),
        rules("""
            source_blocked BLOCKED_SOURCE:
                barracudacentral | reputation | {rejected,blocked,intent} & ip
            content BAD_MESSAGE:
                message content | blocked | permanent failure one or more recipients
        """),
    ),
    System(
        "amazon_ses",
        ("amazonaws.com", "amazonses.com"),
        phrases("amazon ses | amazonses com"),
        rules("""
            daily_quota USED_UP: daily message quota
            throttled THROTTLED:
                throttling failure | maximum sending rate | rate exceeded
                | too many connections | too many
            not_verified OUR_SENDER: not verified
            paused OUR_ACCOUNT:
                sending paused | sending suspended | account is paused
                | sending has been suspended | sending status has been disabled
                | account is under
            account OUR_ACCOUNT:
                authentication credentials invalid | access denied | not authorized to perform
                | configuration set & does not exist | configuration set & not exist
            suppressed REFUSED_RECIPIENT:
                address blacklisted | suppression list | recipient & suppressed
            internal UNAVAILABLE:
                internal failure | service unavailable | temporary service failure
                | timeout waiting for data | temporary authentication failure | internal error
            content BAD_MESSAGE:
                virus | message rejected | invalid & header | message length | message data
        """),
    ),
    System(
        "resend",
        ("resend.com",),
        phrases("resend com"),
        rules("""
            not_verified OUR_SENDER: not verified | testing emails | domain mismatch
            daily_quota USED_UP: daily & quota | monthly & quota | sending quota
            rate THROTTLED: too many requests | rate limit
            account OUR_ACCOUNT: api key | authentication | credentials
        """),
    ),
)
