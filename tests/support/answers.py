"""The labelled answers, as tests score them and the bench times them."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from carteiro.model import Failure, value
from carteiro.policy.stage import Stage
from carteiro.providers.answers import judge_answer

ANSWERS = Path(__file__).parents[1] / "policy" / "answers"


@value
class Labelled:
    """An answer, its source, and its meaning."""

    text: str
    label: str
    stage: Stage | None
    mx: str
    provider: str

    def judged(self) -> Failure:
        """Our classification of it."""
        return judge_answer(self.text, provider=self.provider, stage=self.stage, mx=self.mx)


def labelled(file: Path) -> Iterator[Labelled]:
    """The answers of a file: ``mx`` and ``provider`` of all, then a table for each label, a list for each stage."""
    tables = tomllib.loads(file.read_text("utf-8"))
    mx, provider = tables.pop("mx", ""), tables.pop("provider", "")
    for label, stages in tables.items():
        for stage, texts in stages.items():
            for text in texts:
                yield Labelled(text, label, None if stage == "any" else Stage(stage), mx, provider)


ALL = [each for file in sorted(ANSWERS.glob("*.toml")) for each in labelled(file)]
