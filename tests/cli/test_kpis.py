"""Key figures from the command line."""

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine


def test_key_figures_have_their_goals(line: CommandLine) -> None:
    """Of two e-mails, one bounced: neither goal of delivery is met."""
    line.tenant("acme")
    line.sent("ok@sandbox.test", "--tenant", "acme")
    line.dead("--tenant", "acme")

    told = line.asked("kpis")
    shown = line.done("kpis")

    figures = {each["name"]: (each["figure"], each["isMet"]) for each in told["kpis"]}
    assert figures["final_delivery"] == (0.5, False)
    assert figures["finally_failed"] == (0.5, False)
    assert (told["counts"]["accepted"], told["range"], told["companyId"]) == (2, "24h", None)
    assert "final delivery" in shown
    assert "50.00 %" in shown
    assert "> 98.00 %" in shown


def test_figures_of_one_tenant(line: CommandLine) -> None:
    """Another has none, and that is said."""
    line.tenant("acme")
    line.tenant("brasa")
    line.dead("--tenant", "acme")

    acme, brasa = (line.asked("kpis", "--tenant", each) for each in ("acme", "brasa"))
    said = line("kpis", "--tenant", "brasa", "--range", "1h")

    assert (acme["counts"]["failed"], brasa["counts"]["failed"]) == (1, 0)
    assert "no data" in said.out
    assert "No message ended in the last 1h" in said.err
    assert line("kpis", "--tenant", "nobody").code == ExitCode.NOT_FOUND
    assert line("kpis", "--range", "2h").code == ExitCode.WRONG_USE
