"""What Amazon SNS posts."""

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_pascal


class SnsMessage(BaseModel):
    """A message as SNS posts it; ``Message`` is what was published. What we do not look at may be there."""

    model_config = ConfigDict(alias_generator=to_pascal, extra="ignore", frozen=True, strict=True)

    type: str
    message_id: str
    topic_arn: str
    message: str
    timestamp: str
    signature_version: str
    signature: str
    signing_cert_url: str = Field(alias="SigningCertURL")
    subject: str | None = None
    token: str | None = None
    subscribe_url: str | None = Field(default=None, alias="SubscribeURL")
