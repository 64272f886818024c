"""The settings of the ticket lane."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from carteiro.config import values

_LONGEST_DRAIN = timedelta(minutes=4)  # of the 5 that Kafka gives, for cleaning up and committing


class TicketSettings(values.Section):
    """The ticket lane: topics, workers, pauses and the archive."""

    bootstrap_servers: values.Servers
    kafka_file: str
    topic: values.TopicName
    group: values.Text
    dlq_enabled: bool
    dlq_topic: values.TopicName
    max_retries_before_dlq: Annotated[int, Field(ge=1, le=1000)]
    redis: values.QueueUrl
    concurrency: values.SomeCount
    time_limit: values.SomeDuration = Field(alias="time_limit_ms")
    window: values.SomeCount
    window_bytes: values.SomeCount
    pause: bool
    pause_errors: values.ErrorNames
    pause_tickets: values.SomeCount
    pause_share: Annotated[float, Field(gt=0, le=1)]
    pause_within: values.SomeDuration = Field(alias="pause_within_ms")
    pause_at_most: values.SomeDuration = Field(alias="pause_at_most_ms")
    commit_every: values.SomeDuration = Field(alias="commit_every_ms")
    drain: values.SomeDuration = Field(alias="drain_ms")
    mongo: values.MongoUrl
    mongo_database: values.Text
    mongo_collection: values.Text
    alertmanager: values.PageUrlOrNone
    metrics_host: values.Text
    metrics_port: Annotated[int, Field(ge=0, le=65535)]

    @field_validator("dlq_topic")
    @classmethod
    def _is_another_topic(cls, name: str, info: ValidationInfo) -> str:
        if name == info.data.get("topic"):
            raise ValueError(
                "should not be the topic of the tickets: dead letters would be read and fail again"
            )
        return name

    @field_validator("drain")
    @classmethod
    def _is_over_in_time(cls, drain: timedelta) -> timedelta:
        if drain > _LONGEST_DRAIN:
            raise ValueError(
                f"should be at most {_LONGEST_DRAIN // timedelta(milliseconds=1)}: Kafka drops a worker "
                "that does not poll for max.poll.interval.ms, 5 minutes"
            )
        return drain
