"""Codes and phrases of large mail receivers; phrases of any system are in `rules.words`."""

from carteiro.policy.rules.phrases import phrases
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    BLOCKED_SOURCE,
    NO_MAILBOX,
    OUR_ACCOUNT,
    OUR_SENDER,
    RECIPIENT_RATE,
    REFUSED_RECIPIENT,
    THROTTLED,
    TOO_FAST,
    USED_UP,
)
from carteiro.policy.rules.words import System, rule

_OUTLOOK_BLOCKS = "{sc,dy,bv,ou} {001,002,003,004}"
# BL is Yahoo's, the others were AOL's: routing and relaying are about the source, except for content and sender.
_YAHOO_BLOCKS = "bl21 | bl22 | bl23 | bl24 | rtr | rly | dns {nr,b1,b2}"
_AOL_CODES = "con b1 | dyn {t1,t2} | hvu {b1,b2}"
_YAHOO_DEFERS = "{ts,tss}{01,02,04,05,06,07,08,09,10,11,12}"
_NETEASE_LIMITS = """
    mi {dmc,conn,mbr,pfl,sfq,cel,ccl,ufl,stc} | rp {drc,ccl,cel,qrc,trc,rcl} | hl {rep,icc,ifc,ifq,itc,mep,ihu,isb}
"""
_NETEASE_CONTENT = "dt {spm,sum}"
_NETEASE_SENDERS = "mi {ns,spf,spb,nhd,imf,dma} | rp {frl,rdn} | wm {bli,blu}"
_NETEASE_BLOCKS = "hl ipb | dt rbl"
_COX_LIMITS = "cxthrt | cxcnct | cxmxrt"
# Spectrum numbers its reasons by tens.
_TO_50 = "{00,10,20,30,40,50}"
_TO_60 = "{00,10,20,30,40,50,60}"
_BY_TENS = "{00,10,20,30,40,50,60,70,80,90}"

RECEIVERS: tuple[System, ...] = (
    System(
        "google",
        ("google.com", "googlemail.com", "gmail.com"),
        phrases("gsmtp | support google com | gmail com s bulk"),
        (
            rule("inactive", REFUSED_RECIPIENT, "overquotaperm"),
            rule(
                "unauthenticated",
                OUR_SENDER,
                "rate limited because & {spf,dkim,unauthenticated,aligned}",
            ),
            rule("no_account", NO_MAILBOX, "does not exist | nosuchuser"),
            rule(
                "source_blocked",
                BLOCKED_SOURCE,
                """
                very low reputation | not whitelisted | not in whitelist | not allow listed
                | your ip address has been blocked
                """,
            ),
            rule(
                "account_limit",
                THROTTLED,
                "sending limit exceeded | {smtp relay,relay sending} limit",
            ),
            rule("content", BAD_MESSAGE, "likely {unsolicited mail,suspicious} | security issue"),
        ),
    ),
    System(
        "microsoft",
        ("outlook.com", "hotmail.com", "office365.com"),
        phrases(
            f"""
            protection outlook com | office com | s3140 | s3150 | live com | {_OUTLOOK_BLOCKS} | rp {{001,002,003}}
            | resolver {{adr,rst,fwd}} | as 201806281 | storedrv | transport rules
            """
        ),
        (
            rule(
                "account_blocked",
                OUR_ACCOUNT,
                "5 7 {501,502,503,705,750} | exceeded your organization | outboundspamexception",
            ),
            rule(
                "rate",
                TOO_FAST,
                "rate limited | s77 | s775 | rp {001,002,003} | as 4312 | 4 7 {500,650} | server busy",
            ),
            rule(
                "blocked",
                BLOCKED_SOURCE,
                f"{_OUTLOOK_BLOCKS} | s31{{14,15,40,50}} | banned {{sender,sending ip}} | 5 7 {{606,511,708}}",
            ),
            # The daily limit of recipients of our account; it resets after a day.
            rule("recipients_a_day", USED_UP, "5 1 90 | reached your daily limit"),
            rule("recipient_rate", RECIPIENT_RATE, "5 2 {121,122}"),
            rule(
                "directory_block",
                REFUSED_RECIPIENT,
                "5 4 1 & {recipient address rejected,access denied}",
            ),
            rule("unavailable", REFUSED_RECIPIENT, "5 5 0 & mailbox unavailable"),
            rule(
                "unauthenticated",
                OUR_SENDER,
                "5 7 {515,509,512,23} | required authentication level | sendasdenied",
            ),
            rule(
                "recipient_restricted",
                REFUSED_RECIPIENT,
                "resolver rst {notauthorized,authrequired} | resolver rst sendernotauthenticatedfor{group,mailbox}"
                "| delivery not authorized | 5 7 {124,129,133,134,135,136}",
            ),
            rule(
                "account",
                OUR_ACCOUNT,
                "tenantattribution | 5 7 {57,60,64,139} | permissions to send as",
            ),
            rule("malformed", BAD_MESSAGE, "too many related errors | 5 1 20"),
        ),
    ),
    System(
        "yahoo",
        ("yahoodns.net", "yahoo.com", "yahooinc.com", "aol.com"),
        phrases(
            f"""
            {_YAHOO_DEFERS} | ts03 | pr01 | ph01 | au01 | {_YAHOO_BLOCKS} | {_AOL_CODES}
            | postmaster {{yahooinc,yahoo}} com
            | help yahoo com | yahoo com account
            """
        ),
        (
            rule(
                "unauthenticated", OUR_SENDER, "au01 | rly sn | policy reasons & {dmarc,dkim,spf}"
            ),
            rule(
                "content",
                BAD_MESSAGE,
                "pr01 | ph01 | {rtr,rly} {ch,ch2} | hvu {b1,b2} | policy reasons",
            ),
            rule(
                "source_blocked", BLOCKED_SOURCE, f"ts03 | permanently deferred | {_YAHOO_BLOCKS}"
            ),
            rule("deferred", TOO_FAST, f"{_YAHOO_DEFERS} | con b1 | dyn {{t1,t2}}"),
            rule("no_account", NO_MAILBOX, "does not have a & account | mailbox does not exist"),
        ),
    ),
    System(
        "apple",
        ("icloud.com", "apple.com", "me.com", "mac.com"),
        phrases("cs01 | cs02 | hm08 | icloud com | support apple com"),
        (rule("content", BAD_MESSAGE, "cs01 | cs02 | hm08 | local policy"),),
    ),
    System(
        "tencent_netease",
        ("qq.com", "foxmail.com", "163.com", "126.com", "netease.com", "yeah.net", "sina.com"),
        phrases(
            f"""
            service mail qq com | rescode qq | mail qq com | qq com | mail 163 com | 163 com | open qmail help
            | reject by behaviour spam | {_NETEASE_LIMITS} | {_NETEASE_CONTENT} | {_NETEASE_SENDERS} | {_NETEASE_BLOCKS}
            """
        ),
        (
            # QQ: the recipient gets too much mail at once, and is closed for a while.
            rule("recipient_rate", RECIPIENT_RATE, "mailbox unavailable or access denied"),
            rule("rate", TOO_FAST, f"{_NETEASE_LIMITS} | exceed the limit | connection & limited"),
            rule(
                "inactive", REFUSED_RECIPIENT, "{account is,recipient &} abnormal | user suspended"
            ),
            rule("content", BAD_MESSAGE, f"{_NETEASE_CONTENT} | content {{rejected,denied}}"),
            rule(
                "source_blocked",
                BLOCKED_SOURCE,
                f"{_NETEASE_BLOCKS} | suspected bounce attacks | reject by behaviour | ip is rejected",
            ),
            rule(
                "unauthenticated",
                OUR_SENDER,
                f"{_NETEASE_SENDERS} | domain is not found | suspected spam sender",
            ),
        ),
    ),
    System(
        "gmx",
        ("gmx.net", "gmx.de", "gmx.com", "web.de", "mail.com", "1und1.de", "kundenserver.de"),
        phrases("postmaster {gmx net,web de,1und1 de,mail com} | nemesis esmtp"),
        (
            rule("sender", OUR_SENDER, "invalid dns"),
            rule("source_blocked", BLOCKED_SOURCE, "bad dns ptr"),
        ),
    ),
    System(
        "spectrum",
        ("charter.net", "spectrum.net", "rr.com", "twc.com", "brighthouse.com"),
        phrases("aup {in,i,out}"),
        (
            rule(
                "rate", TOO_FAST, f"aup & 1{{3,4}}{_BY_TENS} | aup & 15{{40,50,60,80}} | aup & 1090"
            ),
            rule("source_blocked", BLOCKED_SOURCE, f"aup & 1{{0,1}}{_TO_50} | aup & 12{_TO_60}"),
            rule("content", BAD_MESSAGE, "aup & 11{60,70,80,90} | aup & 1530"),
            rule("sender", OUR_SENDER, "aup & 15{00,10,20}"),
        ),
    ),
    System(
        "cox",
        ("cox.net",),
        phrases(f"{_COX_LIMITS} | cxbl | cxdns | cdrbl | cxsndr | cxsmtp"),
        (
            rule("rate", TOO_FAST, _COX_LIMITS),
            rule("source_blocked", BLOCKED_SOURCE, "cxbl | cxdns | cdrbl"),
            rule("sender", OUR_SENDER, "cxsndr | cxsmtp"),
        ),
    ),
    System(
        "comcast",
        ("comcast.net",),
        phrases("{rl,bl}0000{00,01,02,03,04,05,10} | comcast net"),
        (
            rule("rate", TOO_FAST, "rl0000{01,02,03,04,05}"),
            rule("source_blocked", BLOCKED_SOURCE, "bl0000{00,01,02,03,04,05,10}"),
        ),
    ),
    # Titan documents that it says this of an address that it does not have.
    System(
        "titan",
        ("titan.email",),
        phrases("titan email"),
        (rule("no_address", REFUSED_RECIPIENT, "relay access denied"),),
    ),
)
