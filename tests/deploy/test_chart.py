"""The chart of the ticket lane: its values become valid settings, and its pods start existing commands."""

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
    """Settings of a pod, as the chart writes them."""
    made = rendered(CHART, **changes)["ConfigMap", "tickets-carteiro-tickets"]
    file = folder / "carteiro.toml"
    file.write_text(made["data"]["carteiro.toml"], "utf-8")
    return load(environ={"CARTEIRO_CONFIG": str(file)})


def pod_of(name: str, **changes: Any) -> dict[str, Any]:
    """The pods of a deployment."""
    made = rendered(CHART, **changes)["Deployment", f"tickets-carteiro-tickets-{name}"]
    template: dict[str, Any] = made["spec"]["template"]
    return template["spec"]  # type: ignore[no-any-return]


def test_chart_has_the_defaults_of_the_settings(tmp_path: Path) -> None:
    """Except the addresses of the servers."""
    written = settings_of(tmp_path).tickets
    elsewhere = {"bootstrap_servers", "redis", "mongo"}

    differing = {
        name
        for name in type(DEFAULTS).model_fields
        if getattr(written, name) != getattr(DEFAULTS, name)
    }
    assert differing == elsewhere


def test_dlq_values_become_settings(tmp_path: Path) -> None:
    """Under the former names of `kafka.dlq`."""
    settings = settings_of(tmp_path, **CHANGES)

    assert settings.tickets.dlq_enabled is False
    assert settings.tickets.dlq_topic == "dead.tickets"
    assert settings.tickets.max_retries_before_dlq == 7
    assert settings.ticket_urls == {"DEPLOY": "https://deployer.example.com/tickets"}
    assert settings.tickets.mongo_collection == "dead"
    assert (settings.tickets.window, settings.tickets.window_bytes) == (500, 2**20)


@pytest.mark.parametrize("name", PROCESSES)
def test_kubernetes_values_are_passed_on(name: str) -> None:
    """Unchanged; an empty value adds nothing."""
    passed_on = ("imagePullSecrets", "serviceAccountName", "nodeSelector", "tolerations")
    spec = pod_of(name, **CHANGES)
    [container] = spec["containers"]

    assert {each: spec[each] for each in passed_on} == {each: CHANGES[each] for each in passed_on}
    assert container["env"][-1:] == CHANGES["extraEnv"]
    assert pod_of(name).keys().isdisjoint(passed_on)


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("changes", [{}, CHANGES], ids=["as it is", "changed"])
def test_pod_starts_an_existing_command(name: str, changes: dict[str, Any]) -> None:
    """With valid options."""
    [container] = pod_of(name, **changes)["containers"]
    group, command, *options = container["args"]

    LEAVES[f"carteiro {group} {command}"].make_context(command, [*options])
    assert options == (["--app=builds:tickets"] if changes and name == "worker" else [])


@pytest.mark.parametrize("name", PROCESSES)
def test_probes_use_existing_paths_on_the_metrics_port(name: str) -> None:
    """The pod gets that port as a setting."""
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
def test_pod_finds_its_files(name: str) -> None:
    """Every mounted volume exists, with the settings where the environment says."""
    spec = pod_of(name, **CHANGES)
    [container] = spec["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}

    assert {each["name"] for each in spec["volumes"]} == mounts.keys() == {"settings", "kafka"}
    assert given["CARTEIRO_CONFIG"] == f"{mounts['settings']}/carteiro.toml"
    assert container["envFrom"] == [{"secretRef": {"name": "passwords"}}]


def test_worker_has_time_to_stop(tmp_path: Path) -> None:
    """Otherwise Kubernetes would kill jobs that would have ended."""
    drain = settings_of(tmp_path).tickets.drain.total_seconds()

    assert pod_of("worker")["terminationGracePeriodSeconds"] >= drain + 20


def test_worker_without_time_to_stop_is_refused() -> None:
    """The error names the value that is too short."""
    with pytest.raises(ChartRefused, match="terminationGracePeriodSeconds must be at least"):
        rendered(CHART, worker__drainMs=20_001)

    rendered(CHART, worker__drainMs=20_001, worker__terminationGracePeriodSeconds=41)


def test_changed_settings_restart_the_pods() -> None:
    """A pod reads its settings when it starts."""
    made = [rendered(CHART, kafka__group=group) for group in ("one", "other")]
    templates = [
        each["Deployment", "tickets-carteiro-tickets-worker"]["spec"]["template"] for each in made
    ]

    assert templates[0] != templates[1]


def test_service_selects_both_deployments() -> None:
    """Its selector is a part of the labels of either."""
    made = rendered(CHART)
    service = made["Service", "tickets-carteiro-tickets"]
    pods = [made["Deployment", f"tickets-carteiro-tickets-{name}"]["spec"] for name in PROCESSES]

    for pod in pods:
        labels = pod["template"]["metadata"]["labels"].items()
        assert service["spec"]["selector"].items() <= labels
        assert pod["selector"]["matchLabels"].items() <= labels


@pytest.mark.parametrize("name", PROCESSES)
def test_either_deployment_can_be_disabled(name: str) -> None:
    """By a value."""
    made = rendered(CHART, **{f"{name}__enabled": False})

    assert len(rendered(CHART)) - len(made) == 1


@pytest.mark.parametrize("changes", [{}, CHANGES], ids=["as it is", "changed"])
def test_helm_renders_the_same(changes: dict[str, Any]) -> None:
    """Where Helm is installed; elsewhere the other tests have to do."""
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


def test_strimzi_topics_match_the_settings() -> None:
    """Under valid Kubernetes names; the topic of dead letters as the lane itself creates it."""
    text = (REPOSITORY / "deploy/strimzi/topics.yaml").read_text("utf-8")
    topics = {each["spec"]["topicName"]: each for each in yaml.safe_load_all(text)}
    dead = topics[DEFAULTS.dlq_topic]["spec"]

    assert topics.keys() == {DEFAULTS.topic, DEFAULTS.dlq_topic}
    assert [each["metadata"]["name"] for each in topics.values()] == [
        name.replace(".", "-") for name in topics
    ]
    assert (dead["partitions"], dead["replicas"]) == (PARTITIONS, REPLICAS)
    assert {name: str(dead["config"][name]) for name in TOPIC_SETTINGS} == dict(TOPIC_SETTINGS)
