"""Peers whose needs clash with ours or with each other's: each in a folder of its own, made when it is first used."""

import shutil
import subprocess
import sys
from pathlib import Path

from figures import HERE, Missing, say

_FOLDERS = HERE.parent / ".bench"
_PEERS = HERE / "peers"


def python_of(peer: str) -> Path:
    """The Python of an environment with what ``peers/PEER.txt`` pins."""
    wanted, folder = _PEERS / f"{peer}.txt", _FOLDERS / peer
    python = folder / "bin" / "python"
    if not _is_ready(folder, wanted):
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        say(f"{peer}: install into {folder.relative_to(HERE.parent)}")
        _run(peer, sys.executable, "-m", "venv", "--clear", folder)
        _run(peer, *install, "-r", wanted)
        _mark_ready(folder, wanted)
    return python


def script_of(peer: str, script: str = "drain") -> list[object]:
    """The command that runs ``peers/PEER/SCRIPT.mjs`` with the packages that its ``package.json`` pins."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise Missing(f"{peer} is left out: it needs node and npm")
    source, folder = _PEERS / peer, _FOLDERS / peer
    if not _is_ready(folder, source / "package.json"):
        say(f"{peer}: install into {folder.relative_to(HERE.parent)}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(source / "package.json", folder)
        _run(peer, npm, "install", "--silent", "--no-package-lock", "--prefix", folder)
        _mark_ready(folder, source / "package.json")
    shutil.copy(_PEERS / "measured.mjs", folder)
    return [node, shutil.copy(source / f"{script}.mjs", folder)]  # packages are searched next to it


def _is_ready(folder: Path, wanted: Path) -> bool:
    ready = folder / "ready"
    return ready.exists() and ready.read_text("utf-8") == wanted.read_text("utf-8")


def _mark_ready(folder: Path, wanted: Path) -> None:
    (folder / "ready").write_text(wanted.read_text("utf-8"), "utf-8")


def _run(peer: str, *command: object) -> None:
    try:
        subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise Missing(f"{peer} is left out: it could not be installed") from error
