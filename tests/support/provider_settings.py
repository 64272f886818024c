"""The settings that providers are made with."""

import tomllib
from importlib.resources import files
from typing import Any, TypeVar

from carteiro.config import Section

Shape = TypeVar("Shape", bound=Section)


def usual(shape: type[Shape], **changes: Any) -> Shape:
    """The default settings of a provider, with these fields changed."""
    package = shape.__module__.rpartition(".")[0]
    text = files(package).joinpath("settings.toml").read_text("utf-8")
    told = tomllib.loads(text)[package.rpartition(".")[2]]
    return shape.model_validate(told).model_copy(update=changes)
