"""Hand e-mail to SES: one mail, one request over a connection that is kept for the next."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import timedelta
from functools import cache
from typing import Any

import aiobotocore
import botocore
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader, create_loader

from carteiro.email.message import Email
from carteiro.email.mime import is_international, mail_address, write_mime
from carteiro.errors import DeadlinePassed
from carteiro.model import Deferred, Outcome, Rejected, Taken, Unknown
from carteiro.policy import tags
from carteiro.ports.provider import Fault, Handover, Parcel, Quota, fault_of
from carteiro.providers.letters import written
from carteiro.providers.ses import failures
from carteiro.providers.ses.check import faults
from carteiro.providers.ses.handing import HandingSession, handing_over
from carteiro.providers.ses.settings import SesSettings
from carteiro.providers.ses.spec import SPEC

_SERVICE = "sesv2"
_USER_AGENT = f"Carteiro aiobotocore/{aiobotocore.__version__} botocore/{botocore.__version__}"


class SesProvider:
    """SES takes a mail over when it answers the whole of it with a MessageId, and not before.

    The same message and revision are the same bytes each time, Message-ID and Date among them.
    """

    name = SPEC.name
    features = SPEC.features

    def __init__(self, options: SesSettings, call_limit: timedelta) -> None:
        self._options = options
        self._call_limit = call_limit
        self.connections = options.connections
        self._session = AioSession()
        self._session.register_component("data_loader", _loader())
        self._free = asyncio.Semaphore(options.connections)
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._client: Any = None

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Send the mail to all its recipients, or to none."""
        request = written(parcel, self.name, self._options.default_from, self._request)
        if request is None:
            return Rejected(failures.NOT_INTERNATIONAL)
        if isinstance(request, Rejected):
            return request
        handover.is_queued = True
        async with self._free:
            handover.is_queued = False
            return await self._hand_over(request, handover)

    async def check(self) -> list[Fault]:
        """Problems of the account, if any; nothing is sent."""
        try:
            async with self._open() as client:
                return await faults(client, self._options)
        except BotoCoreError as error:  # no region
            return [fault_of(failures.broke(error), "set ses.region")]

    async def quota(self) -> Quota | None:
        """The sending quota of the account; None if it is unknown."""
        try:
            account = await (await self._connected()).get_account()
        except (BotoCoreError, ClientError):
            return None
        return _quota_of(account)

    async def close(self) -> None:
        """Close the connections."""
        await self._opened.aclose()
        self._client = None

    async def _hand_over(self, request: dict[str, Any], handover: Handover) -> Outcome:
        token = handing_over.set(handover)
        try:
            client = await self._connected()
            answer = await client.send_email(**request)
        except ClientError as error:
            return failures.said(error, begun=handover.begun)
        except BotoCoreError as error:
            if not handover.begun and time.monotonic() >= handover.deadline:
                raise DeadlinePassed from error
            failure = failures.broke(error)
            return Unknown(failure) if handover.begun else Deferred(failure)
        finally:
            handing_over.reset(token)
        taken = answer.get("MessageId")
        return Taken(str(taken)) if taken else Unknown(failures.NO_MESSAGE_ID)

    def _request(self, parcel: Parcel, sender: str) -> dict[str, Any] | None:
        """The send call's arguments, each recipient once; None: an address is not one for SES."""
        email: Email = parcel.content
        to = mail_address(email.to)
        known = {to}
        cc, bcc = _copies(email.cc, known), _copies(email.bcc, known)
        named = [mail_address(sender), *known]
        if email.reply_to:
            named.append(mail_address(email.reply_to))
        if is_international(named):
            return None
        content = write_mime(email, sender=sender, message=parcel.message, revision=parcel.revision)
        request = {
            "FromEmailAddress": named[0],
            "Destination": {"ToAddresses": [to], "CcAddresses": cc, "BccAddresses": bcc},
            "Content": {"Raw": {"Data": content}},
            "EmailTags": _tags_of(parcel),
        }
        if self._options.configuration_set:
            request["ConfigurationSetName"] = self._options.configuration_set
        return request

    async def _connected(self) -> Any:  # noqa: ANN401 - botocore makes its clients as it runs
        """The client, made for the first mail."""
        if self._client is None:
            async with self._opening:
                if self._client is None:
                    self._client = await self._opened.enter_async_context(self._open())
        return self._client

    def _open(self) -> AbstractAsyncContextManager[Any]:
        options = self._options
        opened: AbstractAsyncContextManager[Any] = self._session.create_client(
            _SERVICE,
            region_name=options.region or None,
            endpoint_url=options.endpoint_url or None,
            aws_access_key_id=options.access_key_id or None,
            aws_secret_access_key=options.secret_access_key or None,
            config=AioConfig(
                http_session_cls=HandingSession,
                retries={"total_max_attempts": 1},  # a call that is repeated sends twice
                max_pool_connections=options.connections,
                connect_timeout=options.connect_limit.total_seconds(),
                read_timeout=self._call_limit.total_seconds(),
                parameter_validation=False,  # our own arguments, and a tenth of the call's cost
                user_agent=_USER_AGENT,  # as is making the usual one anew for each call
            ),
        )
        return opened


@cache
def _loader() -> Loader:
    """Botocore's description of SES, read once and not while mails wait: it takes a tenth of a second."""
    loader = create_loader()
    for part in ("service-2", "endpoint-rule-set-1"):
        loader.load_service_model(_SERVICE, part)
    for part in ("_retry", "endpoints", "partitions", "sdk-default-configuration"):
        loader.load_data(part)
    return loader


def _tags_of(parcel: Parcel) -> list[dict[str, str]]:
    """The tags of a mail, for the send call."""
    told = {
        tags.MESSAGE: parcel.message,
        tags.TENANT: parcel.tenant,
        tags.REVISION: str(parcel.revision),
        tags.ATTEMPT: str(parcel.attempt),
    }
    return [{"Name": name, "Value": tags.tag_value(text)} for name, text in told.items()]


def _copies(addresses: tuple[str, ...], known: set[str]) -> list[str]:
    """Those not known yet, as mail carries them; from now on they are."""
    copies = []
    for address in map(mail_address, addresses):
        if address not in known:
            known.add(address)
            copies.append(address)
    return copies


def _quota_of(account: dict[str, Any]) -> Quota | None:
    told = account.get("SendQuota")
    if not told:
        return None
    most = told.get("Max24HourSend", 0)
    return Quota(
        per_second=float(told.get("MaxSendRate", 0)),
        per_day=None if most < 0 else int(most),
        sent_last_day=int(told.get("SentLast24Hours", 0)),
    )
