"""The chart of the ticket lane: its values become settings that load, and its pods start commands that there are."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import generate
from carteiro.config import Settings, load
from carteiro.tickets.dead_letters.topic import PARTITIONS, REPLICAS, TOPIC_SETTINGS
from support.chart import ChartRefused, rendered
from support.pages import REPOSITORY

CHART = REPOSITORY / "deploy/helm/carteiro-tickets"
DEFAULTS = load(environ={}).tickets
LEAVES = {leaf.name: leaf.command for leaf in generate.leaves()}
PROCESSES = ("worker", "archive")
CHANGES: dict[str, Any] = {
    "kafka__dlq__enabled": False,
    "kafka__dlq__topic": "dead.tickets",
    "kafka__dlq__maxRetriesBeforeDLQ": 7,
    "kafka__propertiesSecret": "kafka-client",
    "environmentSecret": "passwords",
    "worker__app": "builds:tickets",
    "worker__urls": {"DEPLOY": "https://deployer.example.com/tickets"},
    "metrics__port": 8123,
    "mongo__collection": "dead",
    "worker__window": 500,
    "worker__windowBytes": 2**20,
    "extraEnv": [{"name": "CARTEIRO_LOG_LEVEL", "value": "debug"}],
    "imagePullSecrets": [{"name": "registry"}],
    "serviceAccountName": "tickets",
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "tickets", "operator": "Exists"}],
}


def settings_of(folder: Path, **changes: Any) -> Settings:
    """What a pod reads, as the chart writes it."""
    made = rendered(CHART, **changes)["ConfigMap", "tickets-carteiro-tickets"]
    file = folder / "carteiro.toml"
    file.write_text(made["data"]["carteiro.toml"], "utf-8")
    return load(environ={"CARTEIRO_CONFIG": str(file)})


def pod_of(name: str, **changes: Any) -> dict[str, Any]:
    """The pods of a deployment."""
    made = rendered(CHART, **changes)["Deployment", f"tickets-carteiro-tickets-{name}"]
    template: dict[str, Any] = made["spec"]["template"]
    return template["spec"]  # type: ignore[no-any-return]


def test_the_chart_has_the_defaults_of_the_settings(tmp_path: Path) -> None:
    """But for where the servers are."""
    written = settings_of(tmp_path).tickets
    elsewhere = {"bootstrap_servers", "redis", "mongo"}

    differing = {
        name
        for name in type(DEFAULTS).model_fields
        if getattr(written, name) != getattr(DEFAULTS, name)
    }
    assert differing == elsewhere


def test_the_values_of_the_dlq_become_settings(tmp_path: Path) -> None:
    """As those who had `kafka.dlq` before expect it."""
    settings = settings_of(tmp_path, **CHANGES)

    assert settings.tickets.dlq_enabled is False
    assert settings.tickets.dlq_topic == "dead.tickets"
    assert settings.tickets.max_retries_before_dlq == 7
    assert settings.ticket_urls == {"DEPLOY": "https://deployer.example.com/tickets"}
    assert settings.tickets.mongo_collection == "dead"
    assert (settings.tickets.window, settings.tickets.window_bytes) == (500, 2**20)


@pytest.mark.parametrize("name", PROCESSES)
def test_what_is_of_kubernetes_is_passed_on(name: str) -> None:
    """As it stands; where nothing is given nothing is said."""
    passed_on = ("imagePullSecrets", "serviceAccountName", "nodeSelector", "tolerations")
    spec = pod_of(name, **CHANGES)
    [container] = spec["containers"]

    assert {each: spec[each] for each in passed_on} == {each: CHANGES[each] for each in passed_on}
    assert container["env"][-1:] == CHANGES["extraEnv"]
    assert pod_of(name).keys().isdisjoint(passed_on)


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("changes", [{}, CHANGES], ids=["as it is", "changed"])
def test_a_pod_starts_a_command_that_there_is(name: str, changes: dict[str, Any]) -> None:
    """With options that it knows."""
    [container] = pod_of(name, **changes)["containers"]
    group, command, *options = container["args"]

    LEAVES[f"carteiro {group} {command}"].make_context(command, [*options])
    assert options == (["--app=builds:tickets"] if changes and name == "worker" else [])


@pytest.mark.parametrize("name", PROCESSES)
def test_a_pod_is_asked_where_it_answers(name: str) -> None:
    """On the port of its figures, which it is told, and at addresses that it has."""
    [container] = pod_of(name, **CHANGES)["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    settings = load(
        environ={"CARTEIRO_TICKETS_METRICS_PORT": given["CARTEIRO_TICKETS_METRICS_PORT"]}
    )
    [port] = container["ports"]
    probes = [container[each]["httpGet"] for each in ("livenessProbe", "readinessProbe")]

    assert settings.tickets.metrics_port == port["containerPort"] == 8123
    assert [each["path"] for each in probes] == ["/health/live", "/health/ready"]
    assert {each["port"] for each in probes} == {port["name"]}


@pytest.mark.parametrize("name", PROCESSES)
def test_a_pod_finds_its_files(name: str) -> None:
    """Every volume that is mounted is there, with the settings where the environment says."""
    spec = pod_of(name, **CHANGES)
    [container] = spec["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}

    assert {each["name"] for each in spec["volumes"]} == mounts.keys() == {"settings", "kafka"}
    assert given["CARTEIRO_CONFIG"] == f"{mounts['settings']}/carteiro.toml"
    assert container["envFrom"] == [{"secretRef": {"name": "passwords"}}]


def test_a_worker_has_time_to_end(tmp_path: Path) -> None:
    """Or Kubernetes would kill what would have ended by itself."""
    drain = settings_of(tmp_path).tickets.drain.total_seconds()

    assert pod_of("worker")["terminationGracePeriodSeconds"] >= drain + 20


def test_a_worker_without_time_to_end_is_refused() -> None:
    """With what is too short."""
    with pytest.raises(ChartRefused, match="terminationGracePeriodSeconds must be at least"):
        rendered(CHART, worker__drainMs=20_001)

    rendered(CHART, worker__drainMs=20_001, worker__terminationGracePeriodSeconds=41)


def test_other_settings_are_other_pods() -> None:
    """A pod reads its settings when it starts."""
    made = [rendered(CHART, kafka__group=group) for group in ("one", "other")]
    templates = [
        each["Deployment", "tickets-carteiro-tickets-worker"]["spec"]["template"] for each in made
    ]

    assert templates[0] != templates[1]


def test_the_service_is_for_both() -> None:
    """Its selector is a part of the labels of either."""
    made = rendered(CHART)
    service = made["Service", "tickets-carteiro-tickets"]
    pods = [made["Deployment", f"tickets-carteiro-tickets-{name}"]["spec"] for name in PROCESSES]

    for pod in pods:
        labels = pod["template"]["metadata"]["labels"].items()
        assert service["spec"]["selector"].items() <= labels
        assert pod["selector"]["matchLabels"].items() <= labels


@pytest.mark.parametrize("name", PROCESSES)
def test_either_can_be_left_out(name: str) -> None:
    """By a value."""
    made = rendered(CHART, **{f"{name}__enabled": False})

    assert len(rendered(CHART)) - len(made) == 1


@pytest.mark.parametrize("changes", [{}, CHANGES], ids=["as it is", "changed"])
def test_helm_makes_the_same_of_it(changes: dict[str, Any]) -> None:
    """Where there is Helm, it is asked; elsewhere the other tests have to do."""
    ours = theirs = list(rendered(CHART, **changes).values())
    helm = shutil.which("helm")
    if helm is not None:
        given = [
            f"--set-json={path.replace('__', '.')}={json.dumps(each)}"
            for path, each in changes.items()
        ]
        ran = subprocess.run(
            [helm, "template", "tickets", str(CHART), *given],
            capture_output=True,
            text=True,
            check=True,
        )
        theirs = list(yaml.safe_load_all(ran.stdout))

    assert sorted(map(_without_checksum, ours)) == sorted(map(_without_checksum, theirs))


def _without_checksum(made: dict[str, Any]) -> str:
    made.get("spec", {}).get("template", {}).get("metadata", {}).pop("annotations", None)
    return json.dumps(made, sort_keys=True)


def test_the_topics_of_strimzi_are_those_of_the_settings() -> None:
    """Under names that Kubernetes takes; the topic of dead letters as the lane itself makes it."""
    text = (REPOSITORY / "deploy/strimzi/topics.yaml").read_text("utf-8")
    topics = {each["spec"]["topicName"]: each for each in yaml.safe_load_all(text)}
    dead = topics[DEFAULTS.dlq_topic]["spec"]

    assert topics.keys() == {DEFAULTS.topic, DEFAULTS.dlq_topic}
    assert [each["metadata"]["name"] for each in topics.values()] == [
        name.replace(".", "-") for name in topics
    ]
    assert (dead["partitions"], dead["replicas"]) == (PARTITIONS, REPLICAS)
    assert {name: str(dead["config"][name]) for name in TOPIC_SETTINGS} == dict(TOPIC_SETTINGS)
