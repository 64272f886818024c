"""A page of metrics as a scraper reads it."""

from prometheus_client.parser import text_string_to_metric_families

from carteiro.observability.metrics import Metrics


class Page:
    """A page as a scraper reads it."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of one series; None if there is none."""
        return self.samples.get((f"carteiro_{name}", frozenset(labels.items())))

    def values(self, name: str, label: str) -> dict[str, float]:
        """The values of a metric by one of its labels."""
        return {
            dict(labels)[label]: each
            for (full_name, labels), each in self.samples.items()
            if full_name == f"carteiro_{name}"
        }


async def scraped(metrics: Metrics) -> Page:
    """The page of a scrape."""
    return Page((await metrics.exposition()).decode())
