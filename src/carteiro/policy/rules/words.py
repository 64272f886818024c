"""What the words of an SMTP reply mean, whoever says them; the first rule that finds its words decides.

A phrase may name the codes of its reply: they stand before the text.
"""

from carteiro.model import value
from carteiro.policy.rules.phrases import NETWORK_ADDRESS, Phrases, phrases
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    BLOCKED_SOURCE,
    DESTINATION_FULL,
    DESTINATION_LATER,
    DESTINATION_REFUSES,
    FULL_MAILBOX,
    MESSAGE_LATER,
    NO_MAILBOX,
    OUR_ACCOUNT,
    OUR_SENDER,
    RECIPIENT_RATE,
    REFUSED_RECIPIENT,
    THROTTLED,
    TOO_FAST,
    UNREACHED_RECIPIENT,
    Ruling,
)

_WHO = "{user,recipient,mailbox,address,account,addressee,inbox}"

# The same in other tongues of Europe, as servers there say it.
_BOX_ABROAD = (
    "{caixa,caixa postal,conta,buzon,buzón,cuenta,casella,boite,boîte,bal,postfach,konto,postvak}"
)
_FULL_ABROAD = "{cheia,lotada,lotado,llena,lleno,piena,pleine,voll,vol,excedida,saturée,saturee}"
_NOBODY_ABROAD = """
    inexistente | inexistant | inexistante | inesistente | não existe | nao existe | no existe | non esiste
    | n existe pas | n existe plus | existe pas | existiert nicht | bestaat niet
    | {não,nao} {encontrado,encontrada} | no {encontrado,encontrada} | non {trovato,trovata}
    | introuvable | nicht gefunden | niet gevonden | nicht bekannt
    | {desconhecido,desconhecida,desconocido,desconocida,sconosciuto,sconosciuta}
    | {inconnu,inconnue,unbekannt,unbekannte,unbekannter,onbekend,onbekende}
"""
_SENDER_ABROAD = """
    remetente | remitente | mittente | expediteur | expéditeur | emetteur | émetteur | absender | afzender
"""


@value
class TextRule:
    """A ruling that rests on the words of a reply."""

    name: str
    ruling: Ruling
    phrases: tuple[str, ...]


@value
class System:
    """A system that answers: the ends of its hosts' names, words that only it uses, and its rules."""

    name: str
    hosts: tuple[str, ...]
    signs: tuple[str, ...]
    rules: tuple[TextRule, ...]


_NAMED = {
    "{who}": _WHO,
    "{an_address}": NETWORK_ADDRESS,
    "{box_abroad}": _BOX_ABROAD,
    "{full_abroad}": _FULL_ABROAD,
    "{nobody_abroad}": _NOBODY_ABROAD,
    "{sender_abroad}": _SENDER_ABROAD,
}


def rule(name: str, ruling: Ruling, text: str) -> TextRule:
    """A rule with its phrases as they are written here: see `phrases`; ``{who}`` is whoever gets mail."""
    for short, whole in _NAMED.items():
        text = text.replace(short, whole)
    return TextRule(name, ruling, phrases(text))


def phrases_of(rules: tuple[TextRule, ...]) -> Phrases[TextRule]:
    """The rules, to be found by their words."""
    return Phrases((phrase, each) for each in rules for phrase in each.phrases)


# Greylisting comes before all: such replies often quote a refusal ("Recipient address rejected: Greylisted").
TEXT_RULES: tuple[TextRule, ...] = (
    rule(
        "greylisted",
        DESTINATION_LATER,
        """
        greylisted | graylisted | greylisting | graylisting | greylist | graylist
        | grey listed | gray listed | grey listing | gray listing | postgrey | come back later
        | come back in | first contact & retry | deferred & first time | greylist policy
        | new triplet | triplet
        """,
    ),
    rule(
        "recipient_not_verified_yet",
        DESTINATION_LATER,
        """
        unverified address | address verification in progress | could not be verified
        | recipient verify & temporarily | recipient verification & temporarily
        | callout & temporarily | verify recipient & temporary | unable to verify recipient
        """,
    ),
    rule(
        "server_trouble",
        DESTINATION_LATER,
        """
        {server,system,configuration} {error,problem} | server configuration
        | lookup {failure,error} | local {error,problem} | internal {error,failure}
        """,
    ),
    rule(
        "rate_in_time",
        TOO_FAST,
        "{per,this,last,each,hourly} {second,minute,hour} | hourly {limit,quota,rate}",
    ),
    rule(
        "too_many_recipients",
        MESSAGE_LATER,
        """
        too many recipients | maximum number of recipients | recipients limit
        | recipient limit exceeded | many recipients | too many rcpts
        """,
    ),
    rule(
        "sender_refused",
        OUR_SENDER,
        """
        sender address rejected | sender rejected | sender verify failed | sender denied
        | sender domain & not exist | domain of sender address & not exist
        | domain of sender & not resolve | sender address & does not exist
        | sender & does not exist | sender domain not found | sender & not found
        | sender id pra not permitted | sender address & not owned | not allowed to send as
        | sender address & not allowed | sender domain & must exist | invalid sender
        | sender & not verified | from address & not verified | address is not verified
        | domain & not verified | invalid mail from | bad sender | unknown sender
        | not own the sender | not match & authenticated user | send on behalf of
        | mail from address & not allowed | from domain & not allowed | sender is not authorized
        | from address & {not match,not allowed,not valid,invalid} | sender identity
        | {sender,from} & no mx | sender verification failed | {sender_abroad}
        """,
    ),
    rule(
        "relay_denied",
        OUR_ACCOUNT,
        """
        relay access denied | relaying denied | relay denied | relay not permitted
        | not permitted to relay | not allowed to relay | unable to relay | cannot relay
        | relaying not allowed | relay not allowed | relaying & prohibited | no relaying
        | open relay | authentication required | authentication is required
        | must authenticate | must be authenticated | not authenticated | log in first
        | login required | smtp auth required | relay is not allowed | relaying is not
        | authenticate first | proper authentication | we do not relay | not relay
        | client was not authenticated | not rcpthosts | list of allowed rcpthosts
        """,
    ),
    rule(
        "tls_required",
        OUR_ACCOUNT,
        "{starttls,tls,encryption} {required,is required,needed} | {issue,use} a starttls | over a tls connection",
    ),
    rule(
        "daily_quota",
        THROTTLED,
        """
        daily message quota | daily sending quota | daily quota | daily limit
        | daily user sending
        """,
    ),
    rule(
        "throttled_by_provider",
        THROTTLED,
        """
        throttling failure | maximum sending rate exceeded | maximum send rate
        """,
    ),
    rule(
        "mailbox_disabled",
        REFUSED_RECIPIENT,
        """
        {who} & {disabled,inactive,closed,suspended,deactivated}
        | {who} & {locked,expired,discontinued,terminated,frozen}
        | {who} & {not activated,no longer active,not active,overquotaperm}
        | {who} & {no longer in use,blocked by administrator}
        """,
    ),
    rule(
        "mailbox_outgrown",
        FULL_MAILBOX,
        "{mailbox,inbox} size {limit,exceeded} | {mailbox,inbox} & storage space",
    ),
    rule(
        "message_too_big",
        BAD_MESSAGE,
        """
        message size | message too big | message too large | message is too big
        | message is too large | mail too big | mail too large | mail is too large
        | size limit | size exceeds | exceeds size | exceeded size | maximum size
        | message length exceeds | message exceeds | message file too big | mail size
        | too much mail data | exceeds maximum message | attachment size
        | message is larger than | exceeds the maximum | content too large
        """,
    ),
    rule(
        "mailbox_full",
        FULL_MAILBOX,
        """
        {who} & is full | {user,mailbox} & too many messages on
        | mailbox full | mailbox is full | mailbox for & full | full mailbox | inbox full
        | mailbox has exceeded | inbox is full | inbox is out of | mail box full | over quota
        | overquota | quota exceeded | quota full | out of quota | exceeded quota
        | exceeds quota | quota limit | exceeded its quota | quota | exceeded & storage
        | storage allocation | storage limit | storage quota | out of storage | storage space
        | not enough space | mailbox size limit | insufficient storage & mailbox
        | inode limit | user disk quota | box is full | too many messages & mailbox
        | mailfolder is full | has no space left | recipient storage full | mailbox exceeded
        | {box_abroad} & {full_abroad}
        """,
    ),
    rule(
        "destination_full",
        DESTINATION_FULL,
        """
        insufficient system storage | insufficient system resources | out of disk
        | disk full | no space left on device | insufficient disk space | system storage
        | system resources | mail system full | spool full | space shortage
        """,
    ),
    rule(
        "recipient_rate",
        RECIPIENT_RATE,
        """
        receiving mail at a rate | receiving mail too quickly | receiving mail too fast
        | receiving messages too quickly | user is receiving | recipient & receiving rate
        | receivingrate | receivingrateperm
        | {rate,ratelimit,limit} exceeded for {mailbox,recipient,addressee}
        """,
    ),
    rule("not_local", REFUSED_RECIPIENT, "{user,mailbox,recipient} {not,is not} local"),
    rule(
        "helo_refused",
        BLOCKED_SOURCE,
        "bad helo | invalid helo | helo command rejected | {helo,ehlo} & rejected | helo & {invalid,denied}",
    ),
    rule(
        "user_unknown",
        NO_MAILBOX,
        """
        {who} {unknown,is unknown,not found,is not found,not known}
        | {who} {invalid,is invalid,not valid,is not valid,is not known}
        | {who} {does not exist,doesn t exist,not exist,not exists,no longer exists}
        | {who} {not recognized,is not recognized,not listed,non existent,nonexistent}
        | {who} {could not be found,cannot be found,was not found,not exist here}
        | {unknown,invalid,no such,no,nonexistent,non existent,not a valid,not a known} {who}
        | {unknown or illegal,unknown email,invalid email,no such email,unrouteable,unroutable} {who}
        | bad destination mailbox | not a user here | {who} & not listed in | not a member of domain
        | {does not,doesn t} have an account | no valid {recipient,recipients} | recipient not in
        | unknown or illegal alias | no such person | no such local | unknown local part
        | not our customer | not a user here | no mailbox here by that name | no one by that
        | no mailbox by that name | unrouteable | unroutable | {nobody_abroad}
        | this user doesn t have | no longer on server | no longer with | no longer works here
        | left the company | 550 & does not exist | 550 & doesn t exist
        | 554 & doesn t exist | 554 & does not exist | 5 1 0 & does not exist
        | domain does not exist | invalid domain | unknown domain | host not found
        | unknown host | no such domain | domain not found
        """,
    ),
    rule(
        "recipient_refused_by_policy",
        REFUSED_RECIPIENT,
        """
        recipient address rejected & access denied | recipient address rejected & policy
        | recipient & not accept mail from | recipient & restricted | restricted recipient
        | recipient & only accepts | not accepting mail from you | mailbox is restricted
        | recipient does not accept | not authorized to send to this recipient
        | you are not allowed to send to | not permitted to send to this | recipient & blocked
        | recipient & has opted out | sender is blocked by recipient | recipient prohibits
        | recipient does not want | user has blocked
        """,
    ),
    rule(
        "recipient_rejected",
        NO_MAILBOX,
        """
        recipient address rejected | recipient rejected | recipient not accepted
        | rejected recipient
        """,
    ),
    rule(
        "blocklisted",
        BLOCKED_SOURCE,
        """
        spamhaus | spamcop | sorbs | barracudacentral | rbl | rbls | dnsbl | dnsbls
        | blocklist | blocklisted | block list | blacklist | blacklisted | black list
        | black listed | block listed | blocked using | blocked by & list | denylist
        | deny list | poor reputation | bad reputation | low reputation | ip reputation
        | reputation of the sending | sender reputation | senderscore | sender score | s3140
        | s3150 | uceprotect | invaluement | cbl abuseat | surriel | psbl | ptr record
        | no ptr | ptr | reverse dns | rdns | reverse lookup | reverse hostname
        | cannot find your hostname | cannot find your reverse | client host rejected
        | client host & blocked | your ip & blocked | ip & banned | ip address & blocked
        | your host & blocked | your server & blocked | ip blocked | connection refused & ip
        | ip & not allowed | ip & listed | host & listed | sending ip & reputation
        | unsolicited mail originating from your ip | blocked for abuse | block for spam | banned sending ip
        | client & blocked | sending ip | dynamic {ip,ips,address,addresses} | complaints
        | {ip,ips} {blocked,rejected,refused,banned}
        """,
    ),
    rule(
        "sender_not_authenticated",
        OUR_SENDER,
        """
        spf | dkim | dmarc | unauthenticated | sender policy framework | domainkeys
        | sender id | authentication checks | authentication & domain owner | arc failure
        | not authorized to send from | is not allowed to send mail from
        | not permitted to send mail from | domain & authentication
        """,
    ),
    rule(
        "content_refused",
        BAD_MESSAGE,
        """
        spam | spammy | junk | unsolicited | bulk mail | phishing | phish | virus | malware
        | infected | attachment | attachments | content rejected | message content
        | content filter | content restrictions | content & policy | url & listed | uribl
        | surbl | spamassassin | prohibited content | suspicious | offensive
        | message rejected & content | blocked & content | executable | bounce address tag
        | banned content | header & missing | missing & header | rfc 5322 | rfc5322 | rfc 2822
        | bare lf | bare cr | line too long | message id & invalid | duplicate header
        | malformed | 8bit | looks like & automated | scored
        """,
    ),
    rule(
        "rate",
        TOO_FAST,
        """
        rate | ratelimit | rate limit | rate limited | frequency | slow down | throttled
        | throttling | too fast | too quickly | too many connections | many connections
        | too many messages | too many mails | too many emails | too many errors
        | too many concurrent | too many sessions | too many simultaneous | too much mail
        | too many & per | connection limit | message limit | exceeded & limit
        | limit & exceeded | unusual rate | concurrent connections | connections & exceeded
        | flood | too many | messages per minute | messages per hour | reached & limit
        | sending limit | limits | exceeded the maximum number | unusual traffic
        | traffic & volume | volume
        """,
    ),
    rule(
        "come_back",
        DESTINATION_LATER,
        """
        try again | try later | retry later | later | temporary | temporarily
        | temporarily deferred | system not accepting
        | server busy | too busy | busy | timeout | timed out | shutting down | going down
        | maintenance | out of memory | resources temporarily | retry | again in
        """,
    ),
    rule(
        "source_refused",
        BLOCKED_SOURCE,
        """
        {connection,connections} {rejected,refused,denied,not accepted}
        | your access to & {rejected,denied,refused} | access from & {blocked,rejected,denied,refused}
        | {an_address} & {refused,blocked,rejected,denied,not accepted}
        """,
    ),
    rule(
        "loop",
        UNREACHED_RECIPIENT,
        """
        mail loop | routing loop | loops back to myself | too many hops | hop count
        | loop detected | loop
        """,
    ),
    rule(
        "host_refuses",
        DESTINATION_REFUSES,
        """
        does not accept mail | accepts no mail | no mail service | not accepting mail
        | not accepting messages
        """,
    ),
)

TEXTS = phrases_of(TEXT_RULES)
