"""The suite's options: `--bless` renews golden files, with a filter and never in CI."""

from __future__ import annotations

import os

import pytest

from tests.golden_files import Golden, hold


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="renew the golden files of a -k filter")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--bless"):
        return
    if not config.getoption("-k"):
        raise pytest.UsageError("--bless needs -k: renew the few files that you mean to change")
    if os.environ.get("CI", "0") not in ("", "0", "false"):
        raise pytest.UsageError("--bless is for people; in CI a golden file that differs is wrong")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """golden(path, text): the file must hold the text; --bless makes it, and shows the diff."""
    bless = bool(request.config.getoption("--bless"))
    return lambda path, text: hold(path, text, bless)
