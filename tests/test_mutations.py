"""The list of planted faults, tests/mutations: each still applies, and the tests beside it exist.

That they are caught is `make mutations`, some ten minutes of two cores.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutations import run
from tests.mutations.run import Fault, Ran, verdict

FAULTS = run.faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_applies(fault: Fault) -> None:
    assert fault.applies, f"{fault.file} holds this once: {fault.old}"
    assert fault.why and fault.tests


def test_the_tests_beside_them_exist() -> None:
    tests = sorted({test for fault in FAULTS for test in fault.tests})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *tests]
    done = subprocess.run(command, cwd=run.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_many() -> None:
    assert len(FAULTS) >= 40
    assert len({fault.file for fault in FAULTS}) >= 30


FAILED = "E   assert [1] == [2]\n"
UNBUILT = f"E   UserError: {run.UNBUILT} 1\n{FAILED}"


@pytest.mark.parametrize(
    ("ran", "says"),
    [
        (Ran(1, FAILED, 3), "caught"),
        (Ran(0, "3 passed", 3), "SURVIVED"),
        (Ran(1, UNBUILT, 3), "DOES NOT SHOW"),
        (Ran(1, "E   NameError: x\n", 3), "DOES NOT SHOW"),
        (Ran(2, FAILED, 3), "DOES NOT SHOW"),
        (Ran(-9, "", 3), "HANGS"),
        (Ran(1, FAILED, run.MOST + 1), "TOO SLOW"),
    ],
)
def test_verdicts(ran: Ran, says: str) -> None:
    assert verdict(Fault("f", "f.py", "", "a", "b", ("t",)), ran) == says


def test_a_copy_has_the_fault_and_the_tree_has_not(tmp_path: Path) -> None:
    fault = FAULTS[0]
    run.copy(tmp_path)
    fault.plant(tmp_path)
    assert fault.applies
    assert (tmp_path / fault.file).read_text() != (run.ROOT / fault.file).read_text()
