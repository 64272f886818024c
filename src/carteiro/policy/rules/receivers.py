"""Codes and phrases of large mail receivers; phrases of any system are in `rules.words`."""

from carteiro.policy.rules.phrases import phrases
from carteiro.policy.rules.words import System, rules, spelled_out

_NAMED = {
    "outlook_blocks": "{sc,dy,bv,ou} {001,002,003,004}",
    # BL is Yahoo's, the others were AOL's: routing and relaying are about the source, except for content and sender.
    "yahoo_blocks": "bl21 | bl22 | bl23 | bl24 | rtr | rly | dns {nr,b1,b2}",
    "aol_codes": "con b1 | dyn {t1,t2} | hvu {b1,b2}",
    "yahoo_defers": "{ts,tss}{01,02,04,05,06,07,08,09,10,11,12}",
    "netease_limits": """mi {dmc,conn,mbr,pfl,sfq,cel,ccl,ufl,stc} | rp {drc,ccl,cel,qrc,trc,rcl}
        | hl {rep,icc,ifc,ifq,itc,mep,ihu,isb}""",
    "netease_content": "dt {spm,sum}",
    "netease_senders": "mi {ns,spf,spb,nhd,imf,dma} | rp {frl,rdn} | wm {bli,blu}",
    "netease_blocks": "hl ipb | dt rbl",
    "cox_limits": "cxthrt | cxcnct | cxmxrt",
    # Spectrum numbers its reasons by tens.
    "to_50": "{00,10,20,30,40,50}",
    "to_60": "{00,10,20,30,40,50,60}",
    "by_tens": "{00,10,20,30,40,50,60,70,80,90}",
}


def _system(name: str, hosts: tuple[str, ...], signs: str, listed: str) -> System:
    return System(name, hosts, phrases(spelled_out(signs, _NAMED)), rules(listed, _NAMED))


RECEIVERS: tuple[System, ...] = (
    _system(
        "google",
        ("google.com", "googlemail.com", "gmail.com"),
        "gsmtp | support google com | gmail com s bulk",
        """
            inactive REFUSED_RECIPIENT: overquotaperm
            unauthenticated OUR_SENDER: rate limited because & {spf,dkim,unauthenticated,aligned}
            no_account NO_MAILBOX: does not exist | nosuchuser
            source_blocked BLOCKED_SOURCE:
                very low reputation | not whitelisted | not in whitelist | not allow listed
                | your ip address has been blocked
            account_limit THROTTLED: sending limit exceeded | {smtp relay,relay sending} limit
            content BAD_MESSAGE: likely {unsolicited mail,suspicious} | security issue
        """,
    ),
    _system(
        "microsoft",
        ("outlook.com", "hotmail.com", "office365.com"),
        """
            protection outlook com | office com | s3140 | s3150 | live com | {outlook_blocks} | rp {001,002,003}
            | resolver {adr,rst,fwd} | as 201806281 | storedrv | transport rules
        """,
        """
            account_blocked OUR_ACCOUNT:
                5 7 {501,502,503,705,750} | exceeded your organization | outboundspamexception
            rate TOO_FAST:
                rate limited | s77 | s775 | rp {001,002,003} | as 4312 | 4 7 {500,650} | server busy
            blocked BLOCKED_SOURCE:
                {outlook_blocks} | s31{14,15,40,50} | banned {sender,sending ip} | 5 7 {606,511,708}
            # The daily limit of recipients of our account; it resets after a day.
            recipients_a_day USED_UP: 5 1 90 | reached your daily limit
            recipient_rate RECIPIENT_RATE: 5 2 {121,122}
            directory_block REFUSED_RECIPIENT: 5 4 1 & {recipient address rejected,access denied}
            unavailable REFUSED_RECIPIENT: 5 5 0 & mailbox unavailable
            unauthenticated OUR_SENDER:
                5 7 {515,509,512,23} | required authentication level | sendasdenied
            recipient_restricted REFUSED_RECIPIENT:
                resolver rst {notauthorized,authrequired}
                | resolver rst sendernotauthenticatedfor{group,mailbox}
                | delivery not authorized
                | 5 7 {124,129,133,134,135,136}
            account OUR_ACCOUNT: tenantattribution | 5 7 {57,60,64,139} | permissions to send as
            malformed BAD_MESSAGE: too many related errors | 5 1 20
        """,
    ),
    _system(
        "yahoo",
        ("yahoodns.net", "yahoo.com", "yahooinc.com", "aol.com"),
        """
            {yahoo_defers} | ts03 | pr01 | ph01 | au01 | {yahoo_blocks} | {aol_codes}
            | postmaster {yahooinc,yahoo} com
            | help yahoo com | yahoo com account
        """,
        """
            unauthenticated OUR_SENDER: au01 | rly sn | policy reasons & {dmarc,dkim,spf}
            content BAD_MESSAGE: pr01 | ph01 | {rtr,rly} {ch,ch2} | hvu {b1,b2} | policy reasons
            source_blocked BLOCKED_SOURCE: ts03 | permanently deferred | {yahoo_blocks}
            deferred TOO_FAST: {yahoo_defers} | con b1 | dyn {t1,t2}
            no_account NO_MAILBOX: does not have a & account | mailbox does not exist
        """,
    ),
    _system(
        "apple",
        ("icloud.com", "apple.com", "me.com", "mac.com"),
        "cs01 | cs02 | hm08 | icloud com | support apple com",
        "content BAD_MESSAGE: cs01 | cs02 | hm08 | local policy",
    ),
    _system(
        "tencent_netease",
        ("qq.com", "foxmail.com", "163.com", "126.com", "netease.com", "yeah.net", "sina.com"),
        """
            service mail qq com | rescode qq | mail qq com | qq com | mail 163 com | 163 com | open qmail help
            | reject by behaviour spam | {netease_limits} | {netease_content} | {netease_senders} | {netease_blocks}
        """,
        """
            # QQ: the recipient gets too much mail at once, and is closed for a while.
            recipient_rate RECIPIENT_RATE: mailbox unavailable or access denied
            rate TOO_FAST: {netease_limits} | exceed the limit | connection & limited
            inactive REFUSED_RECIPIENT: {account is,recipient &} abnormal | user suspended
            content BAD_MESSAGE: {netease_content} | content {rejected,denied}
            source_blocked BLOCKED_SOURCE:
                {netease_blocks} | suspected bounce attacks | reject by behaviour | ip is rejected
            unauthenticated OUR_SENDER:
                {netease_senders} | domain is not found | suspected spam sender
        """,
    ),
    _system(
        "gmx",
        ("gmx.net", "gmx.de", "gmx.com", "web.de", "mail.com", "1und1.de", "kundenserver.de"),
        "postmaster {gmx net,web de,1und1 de,mail com} | nemesis esmtp",
        """
            sender OUR_SENDER: invalid dns
            source_blocked BLOCKED_SOURCE: bad dns ptr
        """,
    ),
    _system(
        "spectrum",
        ("charter.net", "spectrum.net", "rr.com", "twc.com", "brighthouse.com"),
        "aup {in,i,out}",
        """
            rate TOO_FAST: aup & 1{3,4}{by_tens} | aup & 15{40,50,60,80} | aup & 1090
            source_blocked BLOCKED_SOURCE: aup & 1{0,1}{to_50} | aup & 12{to_60}
            content BAD_MESSAGE: aup & 11{60,70,80,90} | aup & 1530
            sender OUR_SENDER: aup & 15{00,10,20}
        """,
    ),
    _system(
        "cox",
        ("cox.net",),
        "{cox_limits} | cxbl | cxdns | cdrbl | cxsndr | cxsmtp",
        """
            rate TOO_FAST: {cox_limits}
            source_blocked BLOCKED_SOURCE: cxbl | cxdns | cdrbl
            sender OUR_SENDER: cxsndr | cxsmtp
        """,
    ),
    _system(
        "comcast",
        ("comcast.net",),
        "{rl,bl}0000{00,01,02,03,04,05,10} | comcast net",
        """
            rate TOO_FAST: rl0000{01,02,03,04,05}
            source_blocked BLOCKED_SOURCE: bl0000{00,01,02,03,04,05,10}
        """,
    ),
    # Both document that they say this of too many mails in a short time, and that it passes within a day.
    _system(
        "aruba",
        ("aruba.it", "forpsi.com"),
        "support forpsi com | bizsmtp",
        "rate TOO_FAST: policy violation",
    ),
    # Titan documents that it says this of an address that it does not have.
    _system(
        "titan",
        ("titan.email",),
        "titan email",
        "no_address REFUSED_RECIPIENT: relay access denied",
    ),
)
