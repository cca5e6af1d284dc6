"""Examples of deploying: they can be read, agree with each other, and use what there is."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml
from tests.support.places import ROOT

from limelight.cli import app
from limelight.serve import ServeSettings, create_app
from limelight.serve.http.settings import ADMIN_TOKEN, TOKEN

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "examples" / "deploy"
PORT = 8080
ROUTES = {route.path for route in create_app(ServeSettings({"model": "model"})).routes}


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def joined(name: str) -> list[str]:
    """Lines without comments; those that a backslash ends go on."""
    lines = "\n".join(line for line in text_of(name).splitlines() if not line.startswith("#"))
    return re.sub(r"\\\n\s*", "", lines).splitlines()


def image() -> dict[str, list[str]]:
    """The lines of the second stage of the image, by instruction."""
    found: dict[str, list[str]] = {}
    lines = [line for line in joined("Dockerfile") if line]
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM"))
    for line in lines[last:]:
        word, _, rest = line.partition(" ")
        found.setdefault(word, []).append(rest)
    return found


def entry(arguments: list[str]) -> list[str]:
    [point] = image()["ENTRYPOINT"]
    return [*json.loads(point), *arguments]


def manifest() -> dict[str, dict[str, Any]]:
    return {found["kind"]: found for found in yaml.safe_load_all(text_of("kubernetes.yaml"))}


def container() -> dict[str, Any]:
    [only] = manifest()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load(text_of("compose.yaml"))["services"])


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in joined("limelight.service"):
        name, is_set, value = line.partition("=")
        if is_set:
            found.setdefault(name, []).append(value)
    return found


def started() -> dict[str, list[str]]:
    """What each example starts."""
    [point] = unit()["ExecStart"]
    [usual] = image()["CMD"]
    return {
        "systemd": shlex.split(point),
        "image": entry(json.loads(usual)),
        "compose one": entry(compose()["one"]["command"]),
        "compose two": entry(compose()["two"]["command"]),
        "kubernetes": entry(container()["args"]),
        "ran by hand": entry(["/model", "--gini", "0.6", "--window", "7d"]),
    }


@pytest.mark.parametrize("example", started())
def test_what_is_started_is_a_command(example: str) -> None:
    program, verb, *arguments = started()[example]
    assert program.rpartition("/")[2] == "limelight"
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    # A command remembers the names of its help, which other tests look at.
    given = command.make_context(verb, arguments, help_option_names=["-h", "--help"]).params
    assert given["port"] == PORT


def test_every_file_is_looked_at() -> None:
    names = {file.name for file in FOLDER.iterdir() if file.is_file()}
    assert names == {
        "Dockerfile", "Dockerfile.dockerignore", "compose.yaml", "kubernetes.yaml",
        "limelight.service", "ray_serve.py",
    }  # fmt: skip


def test_the_image() -> None:
    own = image()
    assert own["EXPOSE"] == [str(PORT)]
    assert own["USER"] == [uid := "10001"]
    assert any(f"--uid {uid}" in run for run in own["RUN"])
    [check] = own["HEALTHCHECK"]
    [path] = re.findall(rf"http://127\.0\.0\.1:{PORT}(/[a-z/]+)", check)
    assert path in ROUTES
    stages = [line for line in joined("Dockerfile") if line.startswith("FROM")]
    version = re.findall(r"python:(3\.\d+)-slim", " ".join(stages))
    assert len(version) == 2
    assert len(set(version)) == 1


def test_the_image_has_all_that_a_build_takes() -> None:
    kept = {line[1:] for line in text_of("Dockerfile.dockerignore").splitlines() if line[0] == "!"}
    assert all((ROOT / name).exists() for name in kept)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {project["readme"], *(path.partition("/")[0] for path in project["license-files"])}
    assert needed | {"CMakeLists.txt", "pyproject.toml", "src", "native"} <= kept


def test_the_manifest() -> None:
    deployment, service = manifest()["Deployment"]["spec"], manifest()["Service"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == service["selector"] == labels
    assert deployment["replicas"] == 2
    [port] = container()["ports"]
    assert port["containerPort"] == PORT
    assert service["ports"][0]["targetPort"] == port["name"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container()[probe]["httpGet"]
        assert asked["path"] in ROUTES
        assert asked["port"] == port["name"]
    assert {variable["name"] for variable in container()["env"]} == {TOKEN, ADMIN_TOKEN}
    pod = deployment["template"]["spec"]
    assert f"{pod['securityContext']['runAsUser']}" == image()["USER"][0]
    mounted = {mount["name"] for mount in container()["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert "/metrics" in ROUTES  # what prometheus.io/scrape means


def test_replicas_share_a_ledger() -> None:
    services = compose()
    for name in ("one", "two"):
        [address] = [part for part in services[name]["command"] if "://" in part]
        assert address.startswith("redis://valkey:")
        assert "valkey" in services
        build = services[name]["build"]
        assert (FOLDER / build["context"] / build["dockerfile"]).is_file()
    assert services["one"]["ports"] != services["two"]["ports"]


def test_the_unit() -> None:
    own = unit()
    [command] = own["ExecStart"]
    for credential in own["LoadCredential"]:
        assert f"${{CREDENTIALS_DIRECTORY}}/{credential.partition(':')[0]}" in command
    assert own["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    sections = re.findall(r"^\[(\w+)\]$", text_of("limelight.service"), re.MULTILINE)
    assert sections == ["Unit", "Service", "Install"]


def test_the_wrapper_makes_the_application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ray Serve is not asked for by limelight: a stand-in takes what is handed to it."""
    made: dict[str, Any] = {}

    def options(**given: Any) -> SimpleNamespace:
        made.update(given)
        return SimpleNamespace(bind=lambda: made)

    def ingress(build: Any) -> Any:
        made["build"] = build
        return lambda: object

    ray, serve = ModuleType("ray"), ModuleType("ray.serve")
    serve.ingress = ingress  # type: ignore[attr-defined]
    serve.deployment = lambda kind: SimpleNamespace(options=options)  # type: ignore[attr-defined]
    ray.serve = serve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.serve", serve)
    monkeypatch.setenv("LIMELIGHT_MODEL", str(tmp_path / "model"))
    monkeypatch.setenv("LIMELIGHT_LEDGER", "redis://localhost:6379/0")
    spec = spec_from_file_location("ray_serve_example", FOLDER / "ray_serve.py")
    assert spec is not None
    assert spec.loader is not None
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    assert example.lists["num_replicas"] == 2
    assert {route.path for route in made["build"]().routes} == ROUTES
