"""``make demo`` with a running server, and without one."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from signal import SIGTERM

from carteiro.app import Carteiro
from carteiro.model import TenantId
from support.commands import environment_of_a_command
from support.pages import REPOSITORY
from support.running import PATIENCE_S, up

STEADY = TenantId("demo-steady")


async def played(folder: Path, *arguments: str) -> tuple[int | None, str, str]:
    """Run the demonstration in this folder: exit code, stdout, stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(REPOSITORY / "demo" / "play.py"), *arguments),
        cwd=folder,
        env=environment_of_a_command(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 3 * PATIENCE_S)
    return process.returncode, out.decode(), err.decode()


async def test_demo_runs_and_sums_up(tmp_path: Path) -> None:
    """It sends for several tenants, ends by itself, prints the results, and leaves no key behind."""
    async with up(tmp_path) as running:
        code, out, err = await played(tmp_path, "--seconds", "3", "--url", running.address)
        assert await running.ended(SIGTERM) == 0
    async with Carteiro.open(f"sqlite:///{tmp_path}/carteiro.db") as post:
        states = await post.backend.reading.states()
        keys = await post.backend.keys.list(STEADY)

    assert (code, err) == (0, "")
    assert {"demo-steady", "demo-bursts", "demo-unlucky"} <= set(out.split())
    assert "dead, permanent_error:" in out
    assert states.keys() == {"SENT", "FAILED"}
    assert [key.revoked_at is not None for key in keys] == [True]


async def test_demo_of_a_server_with_another_store_names_the_setting(tmp_path: Path) -> None:
    """``--store`` is known to the server alone."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with up(tmp_path) as running:
        code, _, err = await played(elsewhere, "--url", running.address)

    assert code == 1
    assert err.endswith("run this with CARTEIRO_STORE set to the same store\n"), err


async def test_demo_without_a_server_is_refused(tmp_path: Path) -> None:
    """One line that says what to do."""
    async with up(tmp_path) as running:
        address = running.address
        await running.ended(SIGTERM)

    code, out, err = await played(tmp_path, "--url", address)

    assert (code, out) == (1, "")
    assert err == (
        f"demo: nothing listens on {address}: start it with `make run` in another terminal\n"
    )


async def test_demo_detects_a_server_with_another_store(tmp_path: Path) -> None:
    """Keys of one store are invalid in another."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with Carteiro.open(f"sqlite:///{here}/carteiro.db"):
        pass

    async with up(there) as running:
        code, _, err = await played(here, "--seconds", "3", "--url", running.address)

    assert code == 1
    assert "it uses another store" in err
