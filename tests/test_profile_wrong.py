"""`monocu profile`: what it refuses, and binaries with clocks.

Builds: that of test_profile.py, and one without optimization that has room for few launches.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler import pipeline
from compiler.api.building import build
from compiler.api.profiling import check, plain_rate, profile, timed
from compiler.command.main import main
from compiler.diagnostics import USAGE, UserError
from compiler.target import HOST, Options
from runtime import toolchain
from runtime.binary import capture
from tests.small_models import checkpoint, model
from tests.test_profile import DECODE, MODEL, PREFILL, Capture, plain, words


def test_a_file_that_is_no_text_is_refused(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "q.cu"
    for make in (None, lambda: path.write_bytes(b"launch_times \xff"), path.unlink, path.mkdir):
        if make:
            make()
        assert main(words("--cu", str(path))) == USAGE
        assert f"cannot read {path}: " in capfd.readouterr().err


@pytest.mark.parametrize("options", [Options(max_rows=2), Options(hold=("glu",))])
def test_a_binary_of_other_launches_is_refused(options: Options) -> None:
    """As by hand: `found` has built it of other options."""
    other = timed(pipeline.compile_model(model(MODEL), options, HOST))
    says = r"the same options .* is needed: \d+ were planned, \d+ were made"
    with pytest.raises(UserError, match=says):
        profile(other, DECODE, build(timed(plain())))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--only", "glu"], "a kernel of a step of 1 row is needed, 'glu' was given; there are "),
        (["--only", "heads"], "'heads' was given"),
        (["-n", "4"], "-n: 5 or more is needed, 4 was given"),
        (["--prefill", "-n", "2"], "-n: 3 or more is needed, 2 was given"),
        (["--context", "300"], "a context of 316 tokens is needed"),
        (["--nvtx", "--cu", "q.cu"], "one of --nvtx and --cu is needed, both were given"),
        (["--repeat", "9"], "--repeat: --only KERNEL is needed beside it"),
        (["--repeat", "0"], "--repeat: a whole number from 1 to 100000 is needed"),
    ],
)
def test_errors(more: list[str], says: str, capfd: Capture) -> None:
    assert main(words(*more)) == USAGE
    assert says in capfd.readouterr().err


def test_an_op_program_has_no_steps(capfd: Capture) -> None:
    assert main(["profile", "rope", "--target", "host"]) == USAGE
    assert main(["compile", "rope", "--timed", "-o", "-"]) == USAGE
    assert capfd.readouterr().err.count("a model is needed, rope is an op program") == 2


def test_prompts_are_taken_in_one_behind_another_with_clocks_and_without() -> None:
    says = "a build for one sequence at once is needed, not for 8"
    for run in (lambda: plain_rate(plain(), PREFILL), lambda: check(timed(plain()), PREFILL)):
        with pytest.raises(UserError, match=says):
            run()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--only", "0"], "--only: --times FILE is needed beside it, which was not given"),
        (
            ["--only", "1,99", "--times", "t"],
            r"--only: a launch of the last step .* 0 to \d+, 99 was",
        ),
        (["--only", "0", "--times", "t", "--repeat", "999"], "a smaller -n or --repeat is needed"),
        (["--times", "t", "-n", "99"], "a smaller -n is needed"),
    ],
)
def test_the_binarys_flags_are_checked(
    more: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a build that has room for few launches."""
    monkeypatch.chdir(tmp_path)
    text = timed(plain()).text.replace("MAX_TIMES = 1 << 20", "MAX_TIMES = 1 << 8")
    binary = toolchain.build(text, extra=("-O0",))
    argv = ["--weights", str(checkpoint(MODEL)), "--tokens", "1"]
    with pytest.raises(UserError, match=says) as error:
        capture(binary, [*argv, *(["-n", "3"] if "-n" not in more else []), *more])
    assert error.value.code == USAGE and not list(tmp_path.iterdir())
