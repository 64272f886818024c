"""Phrases of SMTP replies, of any system; the first rule that finds one of its phrases decides.

A phrase may contain the codes of its reply, or the class as ``4xx``: they come before the text.
"""

import re
from collections.abc import Mapping

from carteiro.model import value
from carteiro.policy.rules import ruling as rulings
from carteiro.policy.rules.phrases import Phrases, Said, phrases, words_of
from carteiro.policy.rules.ruling import REFUSED_RECIPIENT, Ruling

_NOBODY_ABROAD = """
    {usuário,destinatário,conta,caixa,endereço,buzón,cuenta}
    & {inexistente,não existe,no existe,desconhecido,desconhecida,desconocido,desconocida}
    | {usuário,destinatário,conta,caixa,buzón,cuenta}
    & {não encontrado,não encontrada,no encontrado,no encontrada}
    | {utilisateur,destinataire,adresse,boîte,compte}
    & {inexistant,inexistante,n existe pas,n existe plus,existe pas,introuvable,inconnu,inconnue}
    | {casella,utente,indirizzo,destinatario}
    & {inesistente,non esiste,non trovato,non trovata,sconosciuto,sconosciuta}
    | {benutzer,empfänger,empfängeradresse,postfach,konto,adresse}
    & {existiert nicht,nicht gefunden,nicht bekannt,unbekannt,unbekannte,unbekannter}
    | {gebruiker,postvak,adres} & {bestaat niet,niet gevonden,onbekend,onbekende}
    | {konto,konta,skrzynka,skrzynki,użytkownik,odbiorca,adres}
    & {nie istnieje,nie ma takiego,nie ma takiej,nieznany,nieznana}
    | {пользователь,ящик,адрес,получатель} & {не существует,не найден,неизвестен}
    | {사용자,계정,주소,수신자,메일} & {존재하지 않,없는}
    | {用户,收件人} & {没有此,没有该,无此}
"""
_NAMED = {
    "who": "{user,recipient,mailbox,address,account,addressee,inbox,maildir,folder,mailfolder}",
    "whom": "{user,recipient,mailbox,account,addressee,inbox,useraccount}",  # an address may be a host's
    "listed": """{blacklisted,blocklisted,black listed,block listed,denylisted,blacklist,blocklist,black list,
        block list,denylist,deny list,blacklists,blocklists}""",
    "refused": "{refused,rejected,blocked,denied,banned,not accepted,not be accepted,were not sent}",
    # What a server consists of, and how it fails.
    "machine": """{server,system,internal,local,processing,software,application,script,daemon,database,sql,mysql,
        db,backend,upstream,downstream,storage,store,disk,filesystem,file system,spool,queue,lock,query,maildir,proxy,
        subsystem,manager,agent,module,component,node,cluster,transport,gateway,platform,program,process,mailer,lmtp,
        network,partition,resolver}""",
    "error": "{error,errors,failure,failed,fail,problem,problems,fault,exception,trouble,timeout,timed out}",
    "away": """{unavailable,not available,unreachable,not reachable,inaccessible,not responding,not running,down,
        offline,overloaded,busy,crashed,exhausted,restarting,rebooting}""",
    "scanner": """{antivirus,anti virus,antispam,virus scanner,content scanner,scanner,engine,milter,clamd,clamav,spamd,
        spam assassin,rspamd,policy daemon}""",
    "now": "{currently,temporarily,momentarily,presently}",
    "passing": "{temporary,transient} & {error,failure,problem,issue,block}",  # a temporary address is none of it
    # The same in other languages, as servers there say it.
    "box_abroad": """{caixa,caixa postal,conta,buzón,casilla,cuenta,casella,indirizzo,boîte,bal,compte,destinataire,
        postfach,postfaches,postfachs,konto,speicher,speicherplatz,speichervolumen,postvak,usuário,utente,skrzynka,
        schránka,brevlåda,brevlådan,postkasse,kutusu,ящик,邮箱,信箱,账号,
        帐号,账户,メールボックス,アカウント,메일함,편지함,계정}""",
    "full_abroad": """{cheia,lotada,lotado,llena,lleno,piena,pleine,voll,vol,excedida,saturée,überschritten,erschöpft,
        przepełniona,pełna,plná,full,fuld,dolu,überfüllt,переполнен,已满,不足,超過,容量,いっぱい,満杯,초과,용량,가득}""",
    "space_abroad": "{espaço,espacio,spazio,espace,place,platz,speicherplatz,miejsca,места}",
    "no_abroad": """{sem,insuficiente,esgotado,sin,no hay,agotado,senza,esaurito,insufficiente,insuffisant,plus de,
        pas assez,kein,keinen,nicht genug,reicht nicht,brak,недостаточно}""",
    "many_abroad": """{trop de,zu viele,demasiados,demasiadas,muitos,muitas,troppi,troppe,te veel,zbyt wiele,
        слишком много}""",
    "temporary_abroad": """{temporariamente,temporalmente,temporalemente,temporairement,temporaneamente,
        momentaneamente,momentanément,vorübergehend,vorübergehender,temporaneo,temporário,temporaire,tijdelijk,tymczasowo,временно,暂时,一時的,일시적}""",
    "now_abroad": "{momento,atualmente,actualmente,actuellement,attualmente,derzeit,momentan,zurzeit,zur zeit}",
    "disabled_abroad": """{desativada,desativado,bloqueada,bloqueado,suspensa,suspenso,suspendida,suspendido,inativa,
        inativo,desactivada,desactivado,inactiva,inactivo,expirado,expirada,désactivé,désactivée,bloquée,bloqué,
        archivée,suspendu,gesperrt,deaktiviert,stillgelegt,disattivata,disattivato,bloccata,bloccato,sospesa,sospeso,
        geblokkeerd,zablokowane,zablokowana,nieaktywne,nieaktywna,заблокирован,отключен,禁用,停用,冻结,휴면,정지}""",
    "internal_abroad": "{interno,interna,interne,interner,interní,intern,wewnętrzny,внутренняя,dahili}",
    "error_abroad": "{erro,error,errore,erreur,fehler,serverfehler,fout,fel,feil,fejl,błąd,chyba,ошибка,hata}",
    "overloaded_abroad": """{sobrecarregado,sobrecargado,surchargé,überlastet,sovraccarico,overbelast,przeciążony,
        перегружен}""",
    "maintenance_abroad": """{manutenção,mantenimiento,manutenzione,wartung,wartungsarbeiten,onderhoud,konserwacja,
        údržba,обслуживание}""",
    "nobody_abroad": _NOBODY_ABROAD,
    "nothing_abroad": " | ".join(each.partition("&")[2] for each in _NOBODY_ABROAD.split("|")),
    "sender_abroad": "{remetente,remitente,mittente,expéditeur,émetteur,absender,absenderadresse,afzender}",
    "mail_abroad": """{mensagem,mensaje,correo,messaggio,message,mail,courriel,nachricht,bericht,wiadomość,письмо,
        сообщение,mails,nachrichten}""",
    "refused_abroad": """{rejeitada,rejeitado,recusada,recusado,bloqueada,rechazado,rechazada,rifiutato,respinto,
        rejeté,refusé,akzeptiert,abgelehnt,abgewiesen,zurückgewiesen,geweigerd,odrzucona,odrzucono,отклонено,
        отвергнуто}""",
    "size_abroad": "{taille,tamanho,tamaño,größe,dimensione,dimensioni,rozmiar,grootte,размер}",
    "contents_abroad": """{pièce jointe,pièces jointes,adjunto,adjuntos,anexo,anexos,allegato,allegati,anhang,bijlage,
        contenu,contenido,conteúdo,inhalt,contenuto,вложение,附件,内容,첨부,添付}""",
    "authentication_abroad": """{authentification,autenticação,autenticación,autentíquese,autenticar,autenticarse,
        autenticazione,autenticarsi,authentifizierung,anmeldung,anmelden,uwierzytelnienie,авторизация,авторизации,
        认证,身份验证,認証,인증}""",
    "denied_abroad": """{accès refusé,acceso denegado,accesso negato,acesso negado,zugriff verweigert,verweigert,
        odmowa,доступ запрещён,interdit,interdite,interdits,proibido,prohibido,prohibida,vietato,verboten,
        no permitido,no permitida,não permitido,não permitida,non autorisé,non autorizzato,non consentito,
        no autorizado,não autorizado,nicht erlaubt,nicht zugelassen,nicht gestattet,unzulässig,unzulässiger,
        запрещено,запрещён,запрещена,pas autorisé,禁止}""",
    "big_abroad": """{muito grande,demasiado grande,muy grande,trop grand,trop gros,trop volumineux,trop lourd,
        zu groß,zu lang,troppo grande,te groot,zbyt duża,za duża,слишком большое,слишком велико}""",
    "limit_abroad": """{límite,limites,cota,limit,limitu,versandlimit,sendelimit,nachrichtenlimit,limiet,
        лимит}""",
    "links_abroad": "{conexões,conexiones,connexions,connessioni,verbindungen,połączeń,соединений,连接,接続}",
    "most_abroad": """{máximo,máxima,massimo,massima,maximal,maximale,maximales,maximum,maksymalny,simultâneas,
        simultáneas,simultanées,simultanee,gleichzeitige,максимальный,最大}""",
    "failed_abroad": """{não foi possível,falha ao,no se pudo,no fue posible,impossible d,impossible de,impossibile,
        konnte nicht,nie można,не удалось,无法,できません}""",
    "stored_abroad": """{gravar,salvar,guardar,grabar,enregistrer,salvare,gespeichert,zapisać,сохранить,записать,保存,
        conectar,conectarse,connecter,connettersi,verbinden,подключиться}""",
    "overtime_abroad": """{tempo esgotado,tiempo de espera,tempo scaduto,délai d attente,zeitüberschreitung,
        время ожидания,超时,タイムアウト,시간 초과}""",
    "database_abroad": "{banco de dados,base de datos,base de données,datenbank,база данных,数据库,データベース}",
    "reached_abroad": """{excedeu,excedido,excedida,ultrapassado,atingido,atingiu,superado,superato,alcanzado,
        ultrapassou,superou,alcanzó,raggiunto,dépassé,dépassée,atteint,atteinte,erreicht,überschritten,overschreden,bereikt,przekroczony,przekroczono,osiągnięty,
        превышен}""",
}


@value
class TextRule:
    """A ruling by phrases of a reply."""

    name: str
    ruling: Ruling
    phrases: tuple[str, ...]


@value
class System:
    """A system that answers: the ends of its host names, phrases that only it uses, and its rules."""

    name: str
    hosts: tuple[str, ...]
    signs: tuple[str, ...]
    rules: tuple[TextRule, ...]


def spelled_out(text: str, named: Mapping[str, str] = _NAMED) -> str:
    """The text with named choices written out, such as ``{who}`` for any recipient."""
    for short, whole in named.items():
        text = text.replace(f"{{{short}}}", whole)
    return text


_RULE = re.compile(r"^ *(\w+) (\w+):", re.MULTILINE)
_REMARK = re.compile(r"^ *#.*$", re.MULTILINE)


def rules(text: str, named: Mapping[str, str] = _NAMED) -> tuple[TextRule, ...]:
    """The rules of a text, each as ``name RULING: phrases``; a line that begins with ``#`` is a remark."""
    _, *parts = _RULE.split(_REMARK.sub("", spelled_out(text, named)))
    return tuple(
        TextRule(name, getattr(rulings, ruling), phrases(listed))
        for name, ruling, listed in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    )


def phrases_of(listed: tuple[TextRule, ...]) -> Phrases[TextRule]:
    """The rules, to be found by their words."""
    return Phrases((phrase, each) for each in listed for phrase in each.phrases)


# These rules beat every enhanced code: servers put one code on all their refusals, and explain in the text.
# Greylisting comes first, as such replies quote a refusal. A missing mailbox comes last, as no address is
# suppressed permanently if the reply names another cause.
_CAUSES = rules("""
    greylisted DESTINATION_LATER:
        {grey,gray}{listed,listing,list} | {grey,gray} {listed,listing,list} | postgrey | triplet
        | come back {later,in} | first contact & retry | first time sender | deferred & first time
    recipient_not_verified_yet DESTINATION_LATER:
        verification in progress | {verify,verification,callout} & {temporarily,temporary}
    loop UNREACHED_RECIPIENT:
        loop | looping | loops | points to {local host,localhost} | {too many,maximum,exceeded} & {hops,hop count}
        | hop count | hop limit | too many received headers
    rate_in_time TOO_FAST:
        {per,this,last,each,one,an} {second,minute,hour} | hourly | {hour,minute} limit
    malformed BAD_MESSAGE:
        multiple {from,sender,subject,header,headers,addresses} | multi recipient bounce
        | {too many,multiple} recipients & {bounce,dsn,mdn}
        | too many & {commands,bad command,characters} | commands & exceeded | too much mail data
        | excessive recursion | storage allocation & {message,mail} size
        | {attachment,attachments,archive,zip} & {encrypted,password,cannot open,unable to open,could not open}
    too_many_recipients MESSAGE_LATER:
        too many {recipients,rcpts,rcpt} | {number,total} of {recipients,rcpts,rcpt} | {recipients,recipient} limit
        | many recipients
    servers_refused BLOCKED_SOURCE: connections not accepted from | fix reverse dns
    sender_listed OUR_SENDER:
        {your,sender,sending,senders,from,envelope} domain & {listed}
        | {sender,mailfrom,from} domain & {is listed,listed in,listed at}
        | {sender,sender address,from address,sender s address} {is,has been,was} & {listed} | badmailfrom
        | {an,mail} address & {listed}
        | domain name & {is listed,listed in} | domain {is,has been,was} {listed}
        | domain {blocked,banned,is blocked,has been blocked} | {listed} {user,sender} | sender {listed}
    sender_refused OUR_SENDER:
        sender {unknown,is unknown,address unknown,address rejected,rejected,blocked,verify failed,denied,identity}
        | sender {verification failed,is not authorized} | sender is {rejected,unvalidated,invalid,denied}
        | {invalid,bad,unknown,blank,missing,forged} {sender,from}
        | sender domain & {not,resolve,must exist,invalid,unknown} | domain of sender & not
        | sender & {does not exist,not found,not verified,not owned,not allowed,not permitted}
        | sender & {no mx,unresolvable,not local,forged} | sender & has no & records
        | {requires,require,provide,need} {valid,a valid} {sender,from}
        | mail from {invalid,not allowed,not valid} | mail from & {mismatched,mismatch}
        | unauthorized {sender,from,mail from}
        | return path & {invalid,not}
        | {from address,from domain,from header} & {not verified,not match,not allowed,not valid,invalid,no mx}
        | {address,domain} & {is not verified,not verified} | not own the sender
        | not match & authenticated user | send on behalf of | {not allowed,not authorized,denied} to send as
        | sending address not accepted | need fully qualified address | has no valid mx
        | verification failed {for,while} | sender verify callout | called & sent & response | {sender_abroad}
        | {verify,verifying} the sender | unregistered {domain,domains}
    relay_denied OUR_ACCOUNT:
        {relay,relaying} {access denied,denied,not permitted,not allowed,is not,prohibited,disallowed}
        | {relay,relaying} & denied | relaying & prohibited | {denies,deny,refuses} {relay,relaying}
        | {unable to,cannot,not,no,open} {relay,relaying} | {permitted,allowed,allow} to relay
        | relay & not {permitted,allowed} | not a gateway
        | {authentication,authentification,auth} {required,is required,requise}
        | {must,please} {authenticate,be authenticated,log in,login} | not authenticated | log in first
        | login required | turn on smtp authentication | authenticate first | proper authentication
        | credentials for relay | rcpthosts | local user only | bypassing & relay
        | as a relay | not been configured to let you | {retransmissao,retransmissão} negada | pop before
        | {check,receive,log in,login,authenticate} & before {sending,you send}
    tls_required OUR_ACCOUNT:
        {starttls,tls,encryption} {required,is required,needed} | {issue,use} a starttls | over a tls connection
        | not support tls | requires {tls,encryption} | encrypted connection
    daily_quota USED_UP: daily {message,sending,relay,user,smtp,limit,quota}
    throttled_by_provider THROTTLED: throttling failure | maximum {sending rate exceeded,send rate}
    mailbox_busy BUSY_RECIPIENT:
        {temporarily,temporarly,temporary} {disabled,suspended,locked,inactive,closed} & {whom}
        | disabled temporarly | {whom} {in use,is in use} | {cannot,could not} be locked
        | cannot be accessed & {right now,at this time,at the moment,currently}
        | {disabled,suspended,inactive} & {try again later,try again in,try later,retry later}
        | locked & {try again,try later,retry} | disabled now | locked by another
    mailbox_disabled REFUSED_RECIPIENT:
        {whom} & {disabled,inactive,suspended,deactivated,locked,discontinued,terminated,frozen}
        | {whom} {closed,is closed,has been closed,was closed,expired,is expired,has expired}
        | {whom} & {not activated,no longer active,not active,retired,no longer in use,abandoned}
        | {whom} & {blocked by administrator,cannot be accessed,not an active,archived,dormant}
        | {whom} & {inactivity,under review}
        | {whom} {is,has been,was} {blocked,deleted,removed,cancelled,canceled}
        | address & {disabled,inactive,not an active,deactivated,discontinued,no longer in use}
        | overquotaperm | is {now disabled,disabled,deactivated,suspended}
        | no longer {valid,in service,accepts,accepting,available} | {box_abroad} & {disabled_abroad}
    mailbox_full FULL_MAILBOX:
        {who} & {is full,too full,almost full,nearly full,already full} | {who} full | full {who}
        | box {full,is full} | {user,mailbox} & too many messages on | maximum & number of messages | quota
        | quote exceeded | over quote | overquota
        | {exceed,exceeds,exceeded} & {storage,space}
        | {storage,disk,disc,space} & {exhausted,used,full} | storage {allocation,limit,space}
        | {not enough,no enough,not have enough,not sufficient,no more,out of,lack of,lacks} {space,storage,room,
        capacity}
        | {not enough,not sufficient} {disk,diskspace} | insufficient {space,room} | at capacity
        | over {capacity,space}
        | {mailbox,inbox,account,folder,maildir,storage,user s,recipient s} size | free {space,storage,disk,megabytes}
        | {exceed,reached,insufficient} & storage
        | inode limit | {mailbox,inbox,account} {has exceeded,exceeded,exceeds}
        | {mailbox,inbox,account} & allowed size
        | {box_abroad} & {full_abroad} | {reached_abroad} & {armazenamento,almacenamiento,stockage}
        | cuota | cota | kvota | 配额 | speicherlimit | kvóta | квота | квоты | 용량 초과 | {space_abroad} & {no_abroad}
        | overdrawn | {who} & {max,maximum} {mails,messages}
        | {overflow,overflown,overflowing,overfull} & {who}
        | {over,no more} & storage | {4 2 2,5 2 2} & {size,large,larger,big,limit}
        | disk usage | no room {for,in,left} | {accept,receive,take,store} more | errno 28
        | space {available,left,remaining,not enough} | message count
        | any more {mail,mails,messages} | {mailbox,inbox,account} & any further {mail,mails,messages}
        | {mailbox,inbox,account} limit | zuviele mails
        | {mailbox,inbox,account} & {no room,no space,maximum size,filled,over its limit,stuffed,its cap,occupied}
        | {mailbox,inbox,account,usage,quota} & {at 100,100 percent,100 full} | no {storage,space,quota} left
        | bytes left
        | {who} & {its,their,his,her,the,allotted,allocated} {allowance,ceiling,allotment,allocation}
        | {mailbox,mbox,inbox,maildir}{, is,is now} {too big,too large,oversized} | {run,runs,ran} out of {space,room}
        | {who} & {capacity,emptied,allotted,delete some,clean up,clear out,make room,free up}
        | {mailbox,inbox,account} & {has exceeded,exceeded its,exceeds its} | {over,above,beyond} {allotted,allocated}
    message_expired BAD_MESSAGE:
        {message,mail} expired | {delivery,retry} {time expired,timeout exceeded}
        | retry time not reached for any host
        | {message,mail} {too old,is too old,dropped,deleted,discarded} | in {the,our} queue too long
        | {timed out,expired} in {queue,the queue} | delivery time limit
    delivery_trouble DESTINATION_LATER:
        {cannot,could not,unable to,failed to} {create,open,write,store,save,load,append,lock,connect,reach,queue}
        | {cannot,could not,unable to,failed to} {talk,communicate,filter,rename,flush,stat}
        | {failed_abroad} & {stored_abroad} | {overtime_abroad}
        | {database_abroad} & {error_abroad} | {database_abroad} & {nicht erreichbar,indisponível,no disponible}
        | {cannot,could not,unable to,failed to} {contact,complete,enqueue,spool,fork,execute,commit}
        | {cannot,could not} be contacted | {error,error while,failure,problem} {writing,opening,creating,
        storing,saving,processing,queuing,queueing,accessing,connecting,contacting,communicating,executing}
        | {i o,input output} {error,failure} | connection to & {failed,lost}
        | {write,writing,delivery,maildir} error & {disk,file,maildir} | write {error,failed,failure}
        | {who} & {cannot,could not} be {opened,read}
        | {get,obtain,acquire} {lock,a lock,the lock,connection,a connection}
    message_too_big BAD_MESSAGE:
        {message,mail,header,headers,attachment,content,file} & {too big,too large,size limit,size limits}
        | {message,mail,content,header,attachment,maximum} size & {exceed,exceeds,exceeded,over,limit,maximum,max}
        | size {limit,limits,exceeds,exceeded,restriction} & {message,mail,attachment}
        | {message,mail,content} {is too long,too long,length exceeds,exceeds,exceeded,is larger than} | mailsize
        | {exceed,exceeds,exceeded,over} the {allowed,permitted} size | size & {exceed,exceeds,exceeded,exceeding}
        | limits & size | {5 2 3,5 3 4} & {limit,limits,exceed,exceeds,exceeded} | 552 & {too big,too large,too long}
        | {message,mail,line} length | {mail_abroad} & {big_abroad} | 过大 | 太大 | 大小 | {サイズ,添付} & 超
        | excessive & {links,urls,images,attachments,headers,html} | {size_abroad} & {mail_abroad}
        | {size_abroad} & {most_abroad}
        | exceeds {size,the size,maximum message} | {maximum,fixed} message size
        | {line,lines,header,headers,attachments,mime,parts,nesting,depth,links,urls} & {exceeds,exceeded,too many}
        | {line,lines,header,headers,attachment,attachments,mime,parts,nesting,depth,links,subject,characters} & limit
        | length {exceeds,exceeded,limit} | recipsizelimit
        | {size limit,size limits,maximum size} & {exceed,exceeds,exceeded}
        | {bigger,larger} than | {mb,kb,gb,bytes,megabytes} limit | limit of & {mb,gb,bytes,megabytes}
    destination_full DESTINATION_FULL:
        insufficient {system,disk} {storage,resources,space} | out of disk | disk full | no space {left,on}
        | system {storage,resources} | mail system full | space shortage | {no,out of} {inodes,swap}
        | {spool,queue,store,directory,device,filesystem,file system,partition} {full,is full}
        | queue {too long,is too long}
    recipient_rate RECIPIENT_RATE:
        receiving {mail,messages} {at a rate,too quickly,too fast} | user is receiving
        | recipient & {rate limit,exceeded their} | receiving rate
        | {rate,ratelimit,limit} exceeded for {mailbox,recipient,addressee} | rate that prevents
    not_local REFUSED_RECIPIENT: {user,mailbox,recipient} {not,is not} local
    rate TOO_FAST:
        rate {limit,limits,limited,control,exceeded,limiting} | ratelimit | frequency {limited,limit}
        | slow down | throttled | throttling | too {fast,quickly,frequent,frequently,much mail}
        | {many_abroad} | rate {too high,is too high,overlimit,over limit}
        | too many {connections,messages,mails,errors,concurrent,sessions,simultaneous,requests,invalid,unknown}
        | too many {failed,wrong,nonexistent,transactions,bad,illegal,unsuccessful}
        | many {unknown,invalid} {recipients,users,addresses}
        | {restricted,blocked,banned} for & {hour,hours,minutes} | too much {traffic,mail from,unknown,invalid}
        | credits
        | {maximum,max} number of {mails,messages,connections,sessions} | {maximum,max} {connections,sessions}
        | too many & {connections,sessions,mails,messages,transactions,parallel,deliveries}
        | {mails,messages,recipients} & today | used {all,up} & {mails,messages}
        | {parallel,simultaneous} {connections,sessions,deliveries} | {links_abroad} & {most_abroad}
        | {is,being} shaped
        | sending {pace,speed} | {your,the} {pace,speed} | speed limit | burst of
        | {connection,sending,send,session,traffic,thread,volume,frequency,outgoing} limit | flooding
        | {connection,connections,ip,cluster} & limited | number limited
        | {unusual,excessive,unexpected} {rate,traffic,volume,amount,number,sending,recipients,invalid}
        | concurrent connections
        | per {day,connection,session} | {messages,mails,recipients} a {day,hour,minute}
        | short {period,time,while} | exceeded the maximum number
    content_listed BAD_MESSAGE:
        {url,urls,uri,link,links,hyperlink,body,header,headers,attachment,website} & {listed}
        | {file,extension,word,words} & {listed} | {url,urls,uri} & listed
        | {url,urls,uri,links} & {blocked,banned,forbidden,harmful,malicious} | uribl | surbl | dbl
    judged_spam BAD_MESSAGE:
        {message,mail} & {detected,classified,identified,flagged,marked,recognized,considered,reported} as spam
        | spam {pattern,contents} | spam & score | {bad,banned,forbidden,illegal} {attachment,attachments,content}
    recipient_lists REFUSED_RECIPIENT:
        {recipient s,user s,personal,private} {listed}
        | {blacklisted,blocklisted,blocked} by {the recipient,the user,this user,addressee,recipient,user}
    sender_not_authenticated OUR_SENDER:
        spf & {fail,failed,fails,failure,check,record,records,violation,softfail,hard,not,rejected,policy,error,reject}
        | {spf,dkim,dmarc} {check,checks,policy,reject,validation,signature,record}
        | dkim & {fail,failed,not,missing} | dmarc | unauthenticated | sender policy framework | domainkeys
        | sender id | authentication checks | {authentication,authenticated} & {domain,domain owner}
        | arc failure | spoofed | spoofing
        | {not authorized,is not allowed,not permitted} to send {mail from,from,mail,for}
        | purported responsible | forbids your server | not in allowed senders
    blocklisted BLOCKED_SOURCE:
        spamhaus | spamcop | sorbs | barracudacentral | uceprotect | invaluement | abuseat | surriel | psbl
        | hostkarma | manitu | senderscore | sender score | senderbase | sbrs | rbl | rbls | dnsbl | dnsbls | drbl
        | xbl | s3140
        | s3150 | blocked using
        | {ip,ips,host,server,client,network,connection,connections,you are,you have been,network address} & {listed}
        | {ip,ips,host,network address} & {listed at,listed by,listed on,listed in,is listed,host listed,listing in}
        | network address {is,has been,was} {refused} | network address {refused}
        | {your,sending,this,black,banned,blocked,bad,invalid,the} {ip,ips} & {refused}
        | {black,banned,invalid} ip | {ip,ips} {refused}
        | {mail,messages,message,connection,connections,access} from & network address & {refused}
        | {ip address,host,server,client host,network,region,country} {is,has been,was} {blocked,banned}
        | your {host,server,network,region,country} & {blocked,banned} | client host & {rejected,blocked}
        | client blocked | {poor,bad,low,ip,sender} reputation | reputation of the {sending,client}
        | dynamic {ip,ips,address,addresses} | zombied | {no,missing,invalid,bad,valid,fix} {ptr,rdns,reverse}
        | ptr {record,lookup,check} | reverse {dns,lookup,hostname} | cannot find your {hostname,reverse}
        | block for spam
        | blocked for abuse | mail refused & network address | traffic not accepted
        | spam source | address ranges
    recipient_refused REFUSED_RECIPIENT:
        recipient & {preference,preferences,not accept mail from,restricted,only accepts,blocked,opted out,prohibits}
        | {rejected,refused,blocked,denied} by {recipient,recipients,the recipient,user,addressee,this user}
        | restricted {recipient,recipients} | {recipient,user} {does not want,has blocked,does not accept}
        | {who} & {only accepts,accepts only} | not accepting mail from you | mailbox is restricted
        | user preference | personal {blacklist,block}
        | not {authorized,allowed,permitted} to {send to,post}
        | delivery {is not allowed,not authorized,restriction}
        | {delivery,mailbox} & {restricted by policy,failure policy} | accepts mail from & only
        | {rejected,refused} by destination | {organization,organizational} settings
        | requires that you verify | challenge | forwarding address
        | {mailing list,list} & {closed,member,members,subscriber,subscribers,subscribed,
        moderated}
    scanner_trouble DESTINATION_LATER:
        {scanner}{, is} {away} | filter{, is} {away} | {scanner} {error}
        | {cannot,could not,unable to,failed to} scan
    content_refused BAD_MESSAGE:
        {message,mail,content,body,header,headers} & {spam,spammy,spamming,junk,unsolicited,bulk,ube}
        | spam {message,mail,content,detected,rejected,rejection,score,filter,block,not,list,engine,signature}
        | spam {limit,level,threshold} | {as,is,be,like,looks like,for,anti,contains} spam | antispam | spamming
        | spamassassin | spamtrap
        | spamtext | spamprofiler | {filtering,content,attachment} policy
        | {message,mail} rejected by policy | mass {mailer,mailing,mailings}
        | phishing | phish | virus | viruses | malware
        | infected | trojan
        | {illegal,banned,prohibited,bad} attachment
        | attachment & {not,type,forbidden,refused,rejected,blocked,suspicious} | executable | suspicious
        | offensive
        | {content,header,headers} {rejected,reject,denied,error,filter,filtering,restrictions,refused}
        | {message,mail} {content,contents,filtered,body} | {mail_abroad} & {refused_abroad}
        | {message,mail,body} & {score,scored,scoring,malformed} | unacceptable content
        | {message,mail} & {rejected,blocked} & content | rfc {5322,2822,822} | rfc5322
        | {header,headers} & {missing,multiple,duplicate,invalid,not permitted,disallowed,error} | bare {lf,cr}
        | {line,lines} {too long,is too long} | 8bit | mime & {error,invalid} | bounce address tag
        | looks like & automated
        | message id & invalid | {message,mail} & duplicate | 垃圾邮件 | 迷惑メール
        | вирус | вирусы | 病毒 | ウイルス | 바이러스
    limit TOO_FAST:
        {exceeded,exceed,exeeded,reached,exceeds,exceeding} & {limit,limits,threshold,allowance} | reached & maximum
        | 频率 | 频繁 | 超过限制 | 超出限制 | 上限 | {concurrency,connections} & exceeded
        | {limit_abroad} & {reached_abroad} | por hora | par heure | pro stunde
    server_trouble DESTINATION_LATER:
        {machine} {error} | {machine}{, is} {away} | {database,ldap,mysql,backend,directory} lookup failed
        | {ldap,directory} {error,problem,failure,timed out,timeout} | {ldap,directory}{, is} {away}
        | {out of,no,not enough} {memory,resources} | cannot allocate
        | maildir delivery | verification problem | file error | {who} lookup {failure,error}
        | {qqt,temporary} failure | internal {delivery,user,mail,service,system} {error,problem,failure}
        | {local,system,server} {config,configuration} {error,problem}
        | {host,hop,mx,destination,service}{, is} {down,unreachable,not reachable,timed out,offline,busy}
        | servers busy
        | misconfigured | system call | encountered an error | incorrectly configured
        | 4xx & {error,failure,reached,expired,failed,unable,cannot,could not,dns,queue,resources,excessive,connect}
        | {spool,queue} {file,directory} | after open | lockmailbox
        | {now} {away} | {now} unable
        | currently not {accepting,able} | not currently {accepting,available,able,being} | {temporary_abroad}
        | {now_abroad} & {indisponível,indisponivel,disponible,disponibile,indisponible,verfügbar,erreichbar}
        | technical {difficulty,difficulties,problem,problems,issue,issues,trouble,error,fault,failure}
        | gone away | not mounted | read only {file,filesystem}
        | {resource,resources} {unavailable,not available,exhausted}
        | no such file | unknown error | error in processing
        | {upstream,policy,directory} service {unavailable,is unavailable,not available,is not available}
        | mailbox {corrupt,corrupted,is corrupt,is corrupted,damaged,is damaged}
        | {having,experiencing} {problems,issues,trouble,difficulties}
        | could not be {stored,saved,written,queued} | unexpected {error,failure,condition,exception}
        | not responding | not respond | did not {answer,reply} | no {response,answer} | no reply from | is offline
        | no {backend,backends,servers,healthy} | downtime | dns {problem,timeout,timed out} | servfail
        | insufficient {memory,resources} | {system,server,much,high,heavy} load | load {is too,too,average}
        | wrong with {this,the,our} {server,system} | {something,anything} {went wrong,is wrong,is broken}
        | not writable | hiccup | failover
        | out of order | in trouble | draining | {lack,shortage} of {memory,resources} | did not finish
        | {filesystem,file system,disk,volume}{, is} read only | pipe & {broke,broken,closed}
        | {fatal,runtime} error | unhandled | traceback | panic | null pointer | segmentation fault
        | broken pipe | stale {nfs,file,handle,lock} | no such device | fsync | bind failed | network is unreachable
        | {is,being,are} {restarting,rebooting,upgrading,migrating,restarted,upgraded} | migrating
        | {exit code,exit status,status,exited with} {71,73,74,75} | exited with | {caught,by,received,on} signal
        | {process,program,agent} {killed,was killed,died} | {store,save,write,deliver} {mail,message} {error}
        | {check,get,query,load,fetch} {user,recipient,rcpt,mailbox,account} {error}
        | {get,query,load,fetch} {user,recipient,rcpt,mailbox,account} & {fail,failed,failure}
        | {message,mail} store & {unable,failed,cannot,could not}
        | {ongoing,scheduled} {migration,maintenance,upgrade}
        | being {moved,migrated,upgraded} | migration in progress | open files
        | too busy | under maintenance | shutting down | going down | mailer error | crashed
        | {internal_abroad} & {error_abroad} | {overloaded_abroad}
        | {系统,服务器,内部} & {错误,繁忙,故障} | {サーバー,システム,内部} & {エラー,障害} | 混雑
    user_unknown NO_MAILBOX:
        {whom} {unknown,is unknown,not found,is not found,not known,is not known,was not found,could not be found}
        | {whom} {does not exist,not exist,not exists,no longer exists,non existent,nonexistent}
        | {whom} {not recognized,is not recognized,not exist here,cannot be found,invalid,is invalid}
        | {whom} {not valid,is not valid} | {address,addressee} {unknown,does not exist,no longer exists}
        | {unknown,invalid,no such,nonexistent,non existent,not a valid,not a known} {whom}
        | no such {address,person,local} | no mailbox
        | {unrouteable,unroutable} address | unknown or illegal {user,alias} | mail address lookup & failed
        | bad destination mailbox | not a user here | not listed in {domino,public,directory,the directory}
        | not a member of domain | validrcptto | user does not have a & account
        | does not have an account | no valid {recipient,recipients} | unknown local part
        | mail address & {could not be found,cannot be found} | not our customer | {no one,nobody} by that
        | tried to reach does not exist | no longer on server
        | {unknown,no such} alias | alias {unknown,not found,does not exist}
        | nosuchuser | exrecipnotfound | {nobody_abroad}
""")

POLICY = "policy_refused"  # judged by the stage

# Phrases that say less than a specific code, or name only what was refused.
_HINTS = rules("""
    held BAD_MESSAGE:
        {held,moderated,moderation} & {review,reviewed,approval,verification} | wait for approval
        | {deferred,pending,waiting,awaiting} & {approval,moderator,moderators}
        | quarantined | quarantine
    not_again BAD_MESSAGE:
        not {try again,retry,try later,resend,continue trying,be retried,be tried} | retrying will not
    come_back DESTINATION_LATER:
        {try,retry,resend,resubmit,repeat,come back} {later,in,after,tomorrow} | please {resend,resubmit,repeat,wait}
        | please send {again,it again} | {come,back} again | another time | once more | back {soon,shortly} | tomorrow
        | minutes | seconds
        | try again {later,in,after,shortly,soon,tomorrow} | later
        | {passing} | temporarily | deferred | delayed | busy | timeout | timed out | maintenance | again {in,slower}
        | please retry | at {this,the} {moment,time} | at present | right now | defer | deferral
        | temp {fail,failed,failure,error} | temporary {rejected,reject,refused,denied,rejection,refusal}
        | connection {dropped,lost,reset,error,timeout,aborted} | lost {connection,incoming} | idle
        | overloaded | not accepting network
        | 4xx & {try again,retry,resend,please} | {tente,tentar} {novamente,de novo} | mais tarde | plus tard
        | {réessayer,réessayez,ultérieurement} | später | spater | más tarde | {intente,inténtelo} de nuevo
        | reintente
        | {riprova,riprovare,più tardi} | erneut {versuchen,senden} | noch einmal
        | einigen minuten | {später,bitte} wiederholen | {позже,позднее,повторите} | intentarlo | patienter | minutos
        | minuti | 再度
        | 稍后 | 稍候 | しばらく | 再送 | 나중에 | 잠시 후 | {maintenance_abroad}
    helo_refused OUR_HOST:
        {helo,ehlo} {command rejected,name,host,hostname,argument,invalid,set to}
        | {bad,invalid,forged,fake,false,wrong} {helo,ehlo}
        | helohost | my hostname
    source_refused BLOCKED_SOURCE:
        {connection,connections} {rejected,refused,denied,not accepted} | not accepting connections
        | {refused,not accept} {connection,the connection}
        | your access to & {rejected,denied,refused} | access from & {blocked,rejected,denied,refused}
        | not allowed to connect | block listed | blocklisting | blacklisting
    domain_unknown REFUSED_RECIPIENT:
        domain & does not exist
        | {domain,host,tenant} {not found,unknown,is unknown,lookup failed,not known,not exist,is invalid}
        | {unknown,invalid,no such,unrouteable,unroutable,nonexistent} {domain,host,mail domain} | null mx
        | no mx | unrouteable | unroutable | no route to {host,domain} | mx records & non existent
        | {illegal,bad,missing,malformed} {host,domain} | {host,domain} {missing,malformed,not used,named}
        | not used for mail | not our domain | to route | mail hosts | domain {not handled,is not handled,parked}
        | not a local {domain,host} | domain & expired | no valid domain | not configured
        | delivery point | name service error
        | no smtp service | domain not {taken,served,accepted} | given domain | not hosted here
        | find the recipient domain | must resolve | mail exchanger | any host | nameserver
        | {mx,dns} {record,records,only,entry,entries,error,failure,resolve}
    sender_disliked OUR_SENDER:
        sender | senders | rhsbl | cannot send | mail from | from {address,header,domain} | return path
        | originator | spf | dkim | spoofed | unresolvable | invalid dns | return address
    account_disliked OUR_ACCOUNT:
        authentication | authenticated | authenticate | credentials | password | login | certificate | handshake
        | tls | starttls | encryption | ciphers | auth {error,failed,failure} | smtp auth | relay | relaying
        | {authorized,login,log in,logged in} before | {authentication_abroad}
    bounce_disliked BAD_MESSAGE:
        batv | backscatter | dsn | dsns | bounce | bounces | {null,empty} {sender,envelope,return path,reverse path}
    content_disliked BAD_MESSAGE:
        spam | spams | spammer | spammers | decode | corrupt | corrupted | plain text | attach
        | invalid {mail,message}
        | pattern | priority | advertising | html | dcc | spamblock
        | standards | held | moderation | moderator | approval | unacceptable | comply | compliant
        | {won t,will not,do not} accept | junk | unsolicited | bulk | content | contents | body | header | headers
        | attachment
        | attachments | mime | subject | filter | filtered | blacklist | blacklisted | blocklist | ube
        | {message,part,parts} & {exceeded,exceeds} | {contents_abroad} | indésirable | спам
        | 黑名单 | чёрный список | {lista negra,liste noire}
        | file | files | archive | archives | extension | malformed | encoding | charset | {character,characters}
        | duplicate
    much_at_once TOO_FAST:
        rate | volume | frequency | flood | burst | throttle | overload | limit | limits | exceeded
        | too many {tries,attempts,failures,authentication}
    address_disliked BLOCKED_SOURCE:
        {your,this,bad,source,sending,client,from,remote} {ip,ips} | ip {is,check} | openrelay | open proxy | attack
        | ask your postmaster | range network address | subnet | netblock | no name in dns | residential
    # 552 is too much stored, where no word says too much of what.
    mailbox_full_by_code FULL_MAILBOX: 552 & {mailbox,inbox}
    user_refused REFUSED_RECIPIENT:
        recipient | recipients | addressee | destinataire | destinatario | destinatário | user | users | mailbox
        | account | inbox
        | {invalid,bad,illegal,malformed,wrong,incorrect,unknown,undeliverable} {address,addresses}
        | {address,addresses} {invalid,is invalid,rejected,not accepted,is incorrect,required,not known}
        | {mail,this,that,such,destination,local} {address,addresses} | {address,addresses} failed | rcpt
        | no such | to address | alias | handle mail | incorrectly addressed | bad destination
        | not exist | left the {company,organization} | check the address | unable to find
        | no longer | not here | removed | deleted | disabled | deactivated | inactive | suspended | maildir | homedir
        | directory | rcptto | no address | not {used,in use} | own addresses | forward | has moved
        | be found | valid address | retired | members
        | not {found,known,deliverable} | unknown | undeliverable | badrcptto | no one at | nobody
        | callout | dirección | direcciones | endereço | adresse | utilisateur | usuario | benutzer | empfänger
        | użytkownik | {box_abroad} | nadie | kein solcher | mitglieder | membres | miembros | membros
        | получатель | получателя | адрес | запись | ящике | 收件 | 用户 | 宛先 | ユーザー | 사용자
        | not subscribed | want your
        | addressees | colleagues | registered | unsubscribed | local mail | out of service | person | subscriber
        | subscribers | employee | nxdomain | left us | address unavailable
        | not work here
        | {cannot,not,unable to,not able to,not capable to} {receive,accept,accepting}
        | unavailable to
        | whitelist | whitelisted | {nothing_abroad}
        | neexistuje | нет такого | 없는 | 不存在 | 存在しません | 見つかりません
    policy_refused BAD_MESSAGE:
        policy | policies | prohibited | prohibition | forbidden | not {allowed,permitted,authorized,accepted}
        | {access,permission} denied | denied | no access | no permit | permission | permissions | banned
        | unauthorized | by {administrator,system administrator,the administrator}
        | blocked | administrative | security | restricted | unsafe | {access,approved,allowed} list | go away
        | not {welcome,wanted} | unwelcome | unwanted | disallowed | list of permitted | deny | denies | refuse
        | refuses | declined | {denied_abroad}
    message_refused BAD_MESSAGE:
        {message,mail,delivery} & {refused} | {message,mail} & bounced
        | reject by | {cannot,could not,not} {deliver,delivered,be delivered} | undelivered | 拒绝 | 拒否 | 거부
        | dangerous | malicious | executables | hyperlinks | harmful | fraud | scam | link | links | macro
        | document | documents | caught
        | {mb,gb,megabytes} | older than | remove the | {header,headers,reply to,date,address} missing
    protocol BAD_MESSAGE:
        rfc | conform | parse | parsed | parsing | newline | linefeed | linefeeds | stray | reset | auth first |
        {syntax,protocol,sequence,command,commands,argument,arguments,parameter,parameters} | unrecognized
        | nested | message id | nul | expected | missing | not supported | unsupported
        | {helo,ehlo,hello,rcpt} first | needs ehlo
    host_refuses DESTINATION_REFUSES:
        does not accept mail | accepts no mail | no {mail,smtp} service | not accepting {mail,messages}
    service_unavailable DESTINATION_LATER: service {unavailable,not available}
""")

# An address is suppressed permanently only if nothing else is said: each word is one of these, or the same in another
# language. "User unknown, we are moving" is not certain, and nobody can list all that a server may add.
_SAID_OF_NOBODY = """
    a an the this that there it is are was were be been has have does do not no and or of in on at by to for with as
    i m we you our my s here sorry please error code reason permanent bad such wrong incorrect any more longer one all
    user users recipient recipients mailbox mail box address addresses addressee account e inbox alias local part
    name person nobody customer member unknown invalid valid illegal nonexistent existent non undeliverable unrouteable
    unroutable known found find exist exists recognized listed defined rejected refused accepted specified lives but
    destination table map list search virtual relay requested action taken rcpt message delivered
    deliver cannot could tried try reach double checking check typos misspelled misspelling unnecessary spaces
    learn see visit information help com net org yahoo titan zoho proofpoint qq
    domino smtp gsmtp psmtp dsn p nosuchuser userunknown usersearch exrecipnotfound recipientnotfound recipnotfound
    resolver adr ex recip chkuser chkusr validrcptto
    de da do del des la le el un o ou au aux et en este lettres moins d est ist im invalide inválido servidor
    """
OF_NOBODY = frozenset(words_of(f"{_SAID_OF_NOBODY} {' '.join(phrases(_NOBODY_ABROAD))}"))
# Names of pages and hosts, and what only repeats that there is none.
_REPEATED = re.compile(
    r"""https?://\S+ | (?<![@\w.-])[\w-]++(?:\.[\w-]++){2,}+(?!@) | permanent\ failure | by\ SMTP\ address\ lookup
    | (?:our|the|public|domino)\ directory | (?:in|on|of|at)\ (?:(?:this|our|the)\ )?(?:domain|server|system|host)
    | (?:mailbox|account)\s(?:\S+@\S+\s)?(?:is\s)?(?:un|not\s)available""",
    re.IGNORECASE | re.VERBOSE,
)

_NAMES = re.compile(r"(\w+)@")  # "unknown local part ana in ana@example.com"


def says_only_nobody(text: str, said: Said) -> bool:
    """True if a reply that says "no such mailbox" says nothing else; a word with a digit is a number or a name."""
    names = _NAMES.findall(text.lower())
    return _are_of_nobody(said, names) or _are_of_nobody(Said(_REPEATED.sub(" ", text)), names)


def _are_of_nobody(said: Said, names: list[str]) -> bool:
    others = said.words - OF_NOBODY
    return all(word in names or any(map(str.isdigit, word)) for word in others)


UNKNOWN_PERHAPS = TextRule("user_unknown_perhaps", REFUSED_RECIPIENT, ())

# A text that says "temporary" makes the reply retryable; "try later" is a courtesy, and only a hint.
_LASTING = phrases("{not,no,not a} {temporary,temporarily}")
_PASSING = phrases(
    spelled_out(
        "temporarily | temporarly | momentarily | tempfail | temperror | {passing} | {temporary_abroad}"
    )
)
PASSING = Phrases([*((each, False) for each in _LASTING), *((each, True) for each in _PASSING)])

TEXT_RULES: tuple[TextRule, ...] = (*_CAUSES, UNKNOWN_PERHAPS, *_HINTS)
HINTS = frozenset(each.name for each in _HINTS)
TEXTS = phrases_of(TEXT_RULES)
