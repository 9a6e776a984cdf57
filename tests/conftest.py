"""The suite's options: `--bless` renews golden files, with a filter and never in CI."""

from __future__ import annotations

import os

import pytest

from tests.golden_files import Golden, hold

DIFFS = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="renew the golden files of a -k filter")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[DIFFS] = []
    if not config.getoption("--bless"):
        return
    if not config.getoption("-k"):
        raise pytest.UsageError("--bless needs -k: renew the few files that you mean to change")
    if os.environ.get("CI", "0") not in ("", "0", "false"):
        raise pytest.UsageError("--bless is for people; in CI a golden file that differs is wrong")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for diff in config.stash[DIFFS]:
        terminalreporter.write_line(diff)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """golden(path, text): the file must hold the text; --bless makes it, and shows the diff."""
    if request.config.getoption("--bless"):
        return lambda path, text: hold(path, text, request.config.stash[DIFFS].append)
    return hold
