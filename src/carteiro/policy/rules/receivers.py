"""What large receivers of mail mean by their words."""

from carteiro.policy.rules.phrases import phrases
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    BLOCKED_SOURCE,
    DESTINATION_LATER,
    FULL_MAILBOX,
    NO_MAILBOX,
    OUR_ACCOUNT,
    OUR_SENDER,
    RECIPIENT_RATE,
    REFUSED_RECIPIENT,
    THROTTLED,
    TOO_FAST,
)
from carteiro.policy.rules.words import System, rule

RECEIVERS: tuple[System, ...] = (
    System(
        "google",
        ("google.com", "googlemail.com", "gmail.com"),
        phrases("gsmtp | support google com | gmail com s bulk"),
        (
            rule(
                "recipient_rate",
                RECIPIENT_RATE,
                """
                receiving mail at a rate | receiving mail too quickly
                | user & receiving mail
                """,
            ),
            rule("inactive", REFUSED_RECIPIENT, "overquotaperm | is inactive | is disabled"),
            rule(
                "full",
                FULL_MAILBOX,
                """
                out of storage | over quota | overquotatemp | inbox is full
                """,
            ),
            rule("no_account", NO_MAILBOX, "does not exist | nosuchuser"),
            rule("unusual_rate", TOO_FAST, "unusual rate & temporarily rate limited"),
            rule(
                "unauthenticated",
                OUR_SENDER,
                """
                unauthenticated | dmarc policy | not authenticated & mail | did not pass
                | authentication checks | spf | dkim | not have authentication information
                """,
            ),
            rule("tls_required", OUR_ACCOUNT, "tls required | starttls | tls connection"),
            rule(
                "source_blocked",
                BLOCKED_SOURCE,
                """
                very low reputation | low reputation | not whitelisted | not allow listed
                | ptr record | ptr | ip not in whitelist | your ip address has been blocked
                """,
            ),
            rule("rate", TOO_FAST, "rate limited | unsolicited & temporarily | rate"),
            rule(
                "content",
                BAD_MESSAGE,
                """
                likely unsolicited mail | likely suspicious | suspicious | spam
                | security issue | illegal attachment | virus | messages missing a valid
                | rfc 5322 | blocked & content
                """,
            ),
            rule(
                "account_limit",
                THROTTLED,
                """
                daily user sending | sending limit exceeded | smtp relay limit
                """,
            ),
            rule("later", DESTINATION_LATER, "try again later | temporary system problem"),
        ),
    ),
    System(
        "microsoft",
        (
            "outlook.com",
            "hotmail.com",
            "office365.com",
            "protection.outlook.com",
            "olc.protection.outlook.com",
        ),
        phrases(
            """
            protection outlook com | office com | mail protection outlook | s3140 | s3150
            | live com | sc 001 | sc 002 | sc 003 | sc 004 | dy 001 | dy 002 | bv 001 | ou 001
            | ou 002 | rp 001 | rp 002 | rp 003 | resolver {adr,rst,fwd} | as 201806281 | storedrv
            | transport rules
            """
        ),
        (
            rule("limited", TOO_FAST, "temporarily rate limited"),
            rule(
                "blocked",
                BLOCKED_SOURCE,
                """
                s3140 | s3150 | part of their network is on our block list | banned sender
                | banned sending ip | access denied banned | s3115 | s3114 | block list
                | sc 001 | sc 002 | sc 003 | sc 004 | dy 001 | dy 002 | bv 001 | ou 001
                | ou 002 | 5 7 606 | 5 7 511 | 5 7 606 access denied | ip reputation
                | tenant & threshold exceeded | 5 7 708 | 5 7 750
                """,
            ),
            rule(
                "rate",
                TOO_FAST,
                """
                s77 | rp 001 | rp 002 | rp 003 | rate limited | exceeded & limit | as 4312
                | 4 7 500 | server busy | throttled | exceeding | too many connections
                | 4 7 650 | reputation & deferred | s775 | temporarily rate limited
                """,
            ),
            rule(
                "directory_block",
                REFUSED_RECIPIENT,
                """
                5 4 1 & recipient address rejected | 5 4 1 & access denied
                """,
            ),
            rule(
                "no_mailbox",
                NO_MAILBOX,
                """
                5 5 0 & mailbox unavailable | recipientnotfound | recipient not found
                | user not found | no such user
                """,
            ),
            rule(
                "full",
                FULL_MAILBOX,
                """
                quotaexceeded | quota exceeded | mailbox full | mailbox is full
                """,
            ),
            rule(
                "unauthenticated",
                OUR_SENDER,
                """
                5 7 515 | 5 7 509 | 5 7 512 | dmarc | spf | dkim | does not pass
                | required authentication level | 5 7 23
                """,
            ),
            rule(
                "account",
                OUR_ACCOUNT,
                """
                not authenticated | 5 7 57 | 5 7 64 | relay access denied
                | tenantattribution | 5 7 139 | 5 7 60
                | client does not have permissions to send as
                """,
            ),
            rule(
                "recipient_restricted",
                REFUSED_RECIPIENT,
                """
                resolver rst | notauthorized | restricted | delivery not authorized
                | 5 7 124 | 5 7 133 | 5 7 134 | 5 7 135 | 5 7 136 | 5 7 129
                """,
            ),
            rule(
                "account_blocked",
                OUR_ACCOUNT,
                """
                5 1 90 | 5 7 705 | 5 7 501 | 5 7 502 | 5 7 503 | access denied spam abuse
                | exceeded your organization | outboundspamexception
                """,
            ),
            rule(
                "content",
                BAD_MESSAGE,
                """
                spam | malware | content filter | prohibited | attachment
                """,
            ),
            rule("organisation", DESTINATION_LATER, "tenant inbound | organization & try again"),
            rule(
                "inactive",
                REFUSED_RECIPIENT,
                "accountdisabledexception | mapiexceptionaccountdisabled",
            ),
        ),
    ),
    System(
        "yahoo",
        ("yahoodns.net", "yahoo.com", "yahooinc.com", "aol.com"),
        phrases(
            """
            {ts,tss}{01,02,03,04,05,06,07,08,09,10,11,12} | pr01 | ph01 | bl21 | bl23
            | postmaster yahooinc com | postmaster yahoo com | help yahoo com | bl24
            | yahoo com account
            """
        ),
        (
            rule(
                "source_blocked",
                BLOCKED_SOURCE,
                """
                ts03 | permanently deferred | bl21 | bl23 | bl24 | bl22 | spamhaus
                """,
            ),
            rule(
                "no_account",
                NO_MAILBOX,
                """
                doesn t have a & account | does not exist | no such mailbox | not found
                | no mailbox
                """,
            ),
            rule(
                "inactive",
                REFUSED_RECIPIENT,
                """
                disabled or discontinued | is disabled | discontinued | is inactive
                """,
            ),
            rule(
                "deferred",
                TOO_FAST,
                """
                {ts,tss}{01,02,04,05,06,07,08,09,10,11,12} | user complaints | unexpected volume
                | too many messages | excessive
                """,
            ),
            rule(
                "unauthenticated",
                OUR_SENDER,
                """
                dmarc | dkim | spf | authentication & not | auth failure
                | failed authentication
                """,
            ),
            rule(
                "content",
                BAD_MESSAGE,
                """
                pr01 | ph01 | policy reasons | not accepted for policy | content | spam
                """,
            ),
            rule("full", FULL_MAILBOX, "over quota | quota exceeded | mailbox full"),
        ),
    ),
    System(
        "apple",
        ("icloud.com", "apple.com", "me.com", "mac.com"),
        phrases("cs01 | cs02 | hm08 | icloud com | support apple com"),
        (
            rule("content", BAD_MESSAGE, "cs01 | cs02 | hm08 | local policy | blocked & policy"),
            rule("full", FULL_MAILBOX, "over quota | mailbox full | quota"),
            rule(
                "no_mailbox",
                NO_MAILBOX,
                """
                user does not exist | unknown user | no such user | mailbox does not exist
                | user lookup success but no user record found
                """,
            ),
            rule("blocked", BLOCKED_SOURCE, "proofpoint | your ip | blocked & ip"),
        ),
    ),
    System(
        "qq",
        (
            "qq.com",
            "foxmail.com",
            "exmail.qq.com",
            "163.com",
            "126.com",
            "netease.com",
            "yeah.net",
            "sina.com",
        ),
        phrases(
            """
            service mail qq com | rescode qq | mail qq com | qq com | mail 163 com | 163 com
            | open qmail help | reject by behaviour spam
            """
        ),
        (
            rule(
                "rate",
                TOO_FAST,
                """
                frequency limited | connection frequency | ip frequency | sender frequency
                | domain frequency | too many | mi dmc | mi conn | connection & limited
                | exceed the limit | mi mbr | mi pfl | quan
                """,
            ),
            rule(
                "no_mailbox",
                NO_MAILBOX,
                """
                mailbox unavailable | mailbox not found | user not found | invalid user
                | invalid rcpt | user suspended & not found | no such user
                """,
            ),
            rule(
                "inactive",
                REFUSED_RECIPIENT,
                """
                account is abnormal | recipient & abnormal | user is locked | user suspended
                | access denied
                """,
            ),
            rule(
                "content",
                BAD_MESSAGE,
                """
                spam | content rejected | mail content denied | content denied
                | mail is rejected by recipients | virus | dt spm | dt sum
                """,
            ),
            rule(
                "source_blocked",
                BLOCKED_SOURCE,
                """
                suspected bounce attacks | ip & blocked | blacklist | mail is rejected & ip
                | reject by behaviour
                """,
            ),
            rule(
                "unauthenticated",
                OUR_SENDER,
                """
                spf | dkim | dmarc | not authenticated | domain is not found
                | sender is rejected | mi ns | mi spf
                """,
            ),
        ),
    ),
    System(
        "gmx",
        ("gmx.net", "gmx.de", "gmx.com", "web.de", "mail.com", "1und1.de", "kundenserver.de"),
        phrases(
            "postmaster gmx net | postmaster web de | postmaster 1und1 de | postmaster mail com | nemesis esmtp"
        ),
        # "Mailbox unavailable" begins many of its replies; only without more does it mean what it says.
        (
            rule("rate", TOO_FAST, "send limit | too many | limit exceeded"),
            rule("sender", OUR_SENDER, "invalid dns | sender address | dmarc | spf | dkim"),
            rule("source_blocked", BLOCKED_SOURCE, "block listed | ip address | bad dns ptr"),
            rule("full", FULL_MAILBOX, "storage | quota | is full"),
            rule("content", BAD_MESSAGE, "policy restrictions | spam | virus | size limit"),
            rule("no_mailbox", NO_MAILBOX, "550 & mailbox unavailable"),
        ),
    ),
)
