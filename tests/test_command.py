"""The command: every verb's help, its words and codes on bad command lines, files written whole."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from codegen.driver import driver_text
from compiler.command import main as command
from compiler.command.main import VERBS, main
from compiler.command.run import PLANNED, SWITCHES, VALUES
from compiler.diagnostics import CHECKPOINT, DIFFERENCES, INTERNAL, INTERRUPTED, OK, TOOLCHAIN
from runtime.synthetic import write_synthetic

ROOT = Path(__file__).parents[1]
OP = "norm_matmul_softmax"
BAD = "input x: f32[2, 2]\nreturn silo(x)\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a tiny checkpoint, a bad program and files of every bad kind."""
    monkeypatch.chdir(tmp_path)
    write_synthetic("tiny.gguf", "tiny-llama")
    Path("bad.model").write_text(BAD)
    Path("cut.gguf").write_bytes(Path("tiny.gguf").read_bytes()[:5000])
    Path("good.model").write_text("input x: f32[2, 2]\nreturn x + x\n")
    Path("lists").write_text("1,2\n3,x\n")
    Path("half.model").write_text("input x: f32[3, 3]\ninput h: bf16[4]\nreturn cast(h, f32)\n")
    np.save("odd.npy", np.array([1, 1.0000001, 2, 3], np.float32))
    np.save("words.npy", np.zeros(4, np.uint16))
    np.save("wide.npy", np.zeros((3, 3), np.float32))
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([verb, "--help"])
    out = capsys.readouterr().out
    assert end.value.code == OK and out.startswith(f"usage: monocu {verb}") and len(out) > 200


def test_help_is_quick_and_needs_no_numpy() -> None:
    lines = ["import sys", "from compiler.command.main import VERBS, load, main"]
    lines += ["from compiler.command.parser import Parser", "main(['--help'])"]
    lines += ["for v in VERBS: load(v).arguments(Parser(v, load(v).DOC))"]
    lines += ["assert not {'numpy', 'rich', 'jinja2', 'lark'} & set(sys.modules)"]
    start = time.perf_counter()
    code = "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(verb in done.stdout for verb in VERBS)
    assert time.perf_counter() - start < 3  # 0.1 s where the machine is not busy


LINES = (  # the command line, its exit code, words of its message
    ("", 2, "a verb is needed: compile, build"),
    ("comple x", 2, "did you mean compile"),
    ("--frobnicate", 2, "a verb is needed"),
    ("compile", 2, "arguments are required: MODEL"),
    ("compile nobody", 2, "there is no example nobody"),
    ("compile rop", 2, "did you mean rope"),
    ("compile no/such.model", 2, "no/such.model: a .model file is needed"),
    ("compile bad.model", 2, "bad.model:2:8: error:"),
    ("compile llama", 2, "a checkpoint is needed"),
    ("compile llama --weights none.gguf", 3, "none.gguf: cannot be opened"),
    ("compile llama --weights cut.gguf", 3, "cut.gguf: "),
    ("compile qwen3 --weights tiny.gguf", 3, 'lacks the key "qwen3.'),
    ("compile tiny.gguf --weights tiny.gguf", 2, "one checkpoint is needed"),
    ("compile rope --numerics int9", 2, "argument --numerics: invalid choice: 'int9'"),
    ("compile rope --kv f64", 2, "argument --kv: invalid choice"),
    ("compile rope --max-rows 0", 2, "a whole number from 1 to 4096 is needed, '0' was given"),
    ("compile rope --max-seqs many", 2, "a whole number from 1 to 256 is needed"),
    ("compile rope --hold add-nrom", 2, "did you mean add-norm?"),
    ("compile rope --hold lower-numerics", 2, "lower-numerics always runs"),
    ("compile rope --hold a,,b", 2, "names between commas are needed"),
    ("compile rope --target tpu", 2, "argument --target: invalid choice: 'tpu'"),
    ("compile rope --outt x.cu", 2, "unrecognized arguments: --outt"),
    ("compile rope -o no/such/folder.cu", 2, "no/such/folder.cu cannot be written"),
    ("build --cu none.cu --target host", 2, "cannot read none.cu: No such file"),
    ("build good.model --cu x.cu", 2, "one program is needed"),
    ("build rope --target cuda --arch sm_x", 2, "an architecture is spelled like sm_90a"),
    ("build rope --target cuda --arch sm_75", 2, "sm_80 or newer is needed, sm_75 was given"),
    ("run tiny.gguf", 2, "one of --prompt, --tokens and --seqs is needed, none was given"),
    ("run tiny.gguf --tokens 1 --seqs lists", 2, "--tokens and --seqs were given"),
    ("run tiny.gguf --tokens 1,x", 2, "argument --tokens: a whole number from 0"),
    ("run tiny.gguf --prompt hello", 3, "give token ids with --tokens"),
    ("run tiny.gguf --tokens 1 --temperature 0.5", 2, "--temperature: planned, not there yet"),
    ("run tiny.gguf --tokens 1 --dump all", 2, "--dump and --dump-dir are needed together"),
    ("run tiny.gguf --tokens 1 --logits some", 2, "all or last is needed, 'some' was given"),
    ("run tiny.gguf --tokens 1 --input x=wide.npy", 2, "a model takes prompts, not --input"),
    ("run tiny.gguf --tokens 1 --context few", 2, "--context: a whole number"),
    ("run rope --prompt hello", 2, "--prompt needs a model's checkpoint"),
    ("vm", 2, "a .model, an example's name or a checkpoint is needed"),
    ("vm good.model --tokens 1", 2, "good is an op program: it takes --input, not --tokens"),
    ("vm good.model --input x", 2, "NAME=FILE is needed, 'x' was given"),
    ("vm good.model --input y=wide.npy", 2, "good has no input y"),
    ("vm half.model --input x=wide.npy", 2, "half declares the input x and never reads it"),
    ("vm half.model --input h=odd.npy", 2, "numbers of bf16 are needed, as float32; element 1 is"),
    ("vm half.model --input h=words.npy", 2, "bf16[4] needs float32[4], got uint16[4]"),
    ("vm good.model --input x=none.npy", 2, "none.npy: a .npy file is needed"),
    ("vm good.model --input x=lists", 2, "lists: a .npy file is needed: it has another format"),
    ("vm good.model --input x=wide.npy", 2, "f32[2, 2] needs float32[2, 2], got float32[3, 3]"),
    ("vm good.model --input x=wide.npy --input x=wide.npy", 2, "one file for x is needed"),
    ("vm tiny.gguf --tokens 160", 2, "token ids from 0 to 159 are needed, 160 was given"),
    ("vm tiny.gguf --tokens 1 -n -1", 2, "a whole number from 0"),
    ("vm good.model --logits-file l.npy", 2, "good is an op program: it takes --out, not"),
    ("vm tiny.gguf --seqs lists", 2, "--seqs: lists: a whole number from 0"),
    ("vm tiny.gguf --seqs none", 2, "--seqs: none cannot be read"),
    ("vm llama --weights smollm3 --tokens 1", 3, "smollm3: cannot be opened"),
    ("score tiny.gguf", 2, "a TEXT, --file or --tokens is needed"),
    ("score tiny.gguf hello", 3, "give token ids with --tokens"),
    ("score", 2, "a TEXT, --file or --tokens is needed, none was given"),
    ("score a b c", 2, "more were given"),
    ("score tiny.gguf --tokens 5 --vm", 2, "at least 2 tokens are needed to score, 1 was given"),
    ("score tiny.gguf --file none", 2, "--file: none cannot be read"),
    ("diff tiny.gguf", 2, "one of --prompt, --tokens and --seqs is needed"),
    ("diff good.model --bisect --tokens 1", 2, "good is an op program: it takes --input, not"),
    ("diff good.model --cu lists", 2, "`monocu compile` has written is needed, lists is none"),
    ("diff good.model --cu lists --bisect", 2, "has written is needed, lists is none"),
    ("build --cu lists", 2, "has written is needed, lists is none"),
    ("run --cu lists", 2, "has written is needed, lists is none"),
    ("diff good.model --cu none.cu --target host", 2, "cannot read none.cu: No such file"),
    ("explain bad.model", 2, "did you mean"),
    ("ops silo", 2, "there is no op silo; did you mean silu"),
    ("fmt none.model", 2, "none.model: a .model file is needed: No such file"),
    ("fmt .", 2, "error: .: a .model file is needed: Is a directory"),
    ("vm .", 2, "error: .: a .model file is needed: Is a directory"),
    ("fmt", 2, "arguments are required: FILE"),
    ("fetch llama70b", 2, "a model of smollm2 is needed, llama70b was given"),
    ("doctor all", 2, "unrecognized arguments: all"),
    ("demo --target tpu", 2, "argument --target: invalid choice"),
)


@pytest.mark.parametrize(("line", "code", "words"), LINES, ids=lambda x: str(x))
def test_bad_command_lines(
    line: str, code: int, words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(here.rglob("*"))
    assert main(line.split()) == code
    said = capsys.readouterr()
    assert words in said.err and "Traceback" not in said.err
    assert said.out == "" and sorted(here.rglob("*")) == before, "nothing may be left behind"


def test_another_checkpoint_is_refused_in_a_few_errors(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vm", "qwen3", "--weights", "tiny.gguf", "--tokens", "1"]) == CHECKPOINT
    lines = capsys.readouterr().err.splitlines()
    assert sum(": error: " in line for line in lines) == 3
    assert lines[-1] == "and 3 more errors"
    Path("own.model").write_text("""dim D = shape("token_embd.weight", 1)
dim V = shape("token_embd.weight", 0)
weight token_embd [V, D]
def forward(token) {
  return linear(wanted(embed(token, token_embd)), token_embd)
}
""")
    assert main(["vm", "own.model", "--weights", "tiny.gguf", "--tokens", "1"]) == CHECKPOINT
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[-1] == "  note: and 3 more"


def test_a_compiler_that_says_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MONOCU_CXX", "false")
    assert main(["run", "rope", "--target", "host"]) == TOOLCHAIN
    err = capsys.readouterr().err
    assert re.search(r"a compiler is needed, \S*false --version fails: exit code 1, and it", err)


def test_there_are_many_different_messages() -> None:
    assert len(LINES) >= 60 and len({words for _, _, words in LINES}) >= 45


def test_flags_of_the_binaries_are_those_that_run_passes_on() -> None:
    texts = [driver_text(is_model) for is_model in (True, False)]
    lines = [line for text in texts for line in text.splitlines()]
    declared = {line.split('"')[1] for line in lines if line.startswith('    {"-')}
    own = {"--weights", "--synthetic", "--tokens", "--seqs", "--input", "-n"}
    own |= {"--bench", "--repeat"}  # of monocu bench
    assert {*VALUES, *SWITCHES, *own} == declared - {*PLANNED}
    assert all(f'"{flag}"' in texts[0] for flag in PLANNED)


def test_what_is_ours_is_said_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(words: list[str]) -> int:
        raise KeyError("odd")

    monkeypatch.setattr(command, "dispatch", broken)
    assert main(["ops"]) == INTERNAL
    said = capsys.readouterr().err
    assert said.startswith("internal error: KeyError") and "report it" in said
    assert "Traceback" not in said
    main(["ops", "--traceback"])
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "dispatch", interrupted)
    assert main(["ops"]) == INTERRUPTED


def test_a_reader_that_has_had_enough() -> None:
    line = f"{sys.executable} -m compiler.command vm {OP} | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=ROOT, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"softmax: f32[4, 512]\n", b"")


def test_an_output_that_is_full() -> None:
    line = f"{sys.executable} -m compiler.command vm {OP} > /dev/full"
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == TOOLCHAIN
    assert "No space left" in done.stderr and "bug" not in done.stderr


def test_too_little_memory_is_no_bug(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "huge.model"
    path.write_text("input x: f32[1000000000, 100000]\nreturn x + 1.0\n")
    assert main(["vm", str(path)]) == TOOLCHAIN
    assert capsys.readouterr().err.startswith("error: memory: ")


def test_a_compiler_that_is_not_there(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MONOCU_CXX", "no-such-compiler")
    assert main(["run", "good.model", "--target", "host"]) == TOOLCHAIN
    assert "MONOCU_CXX" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_fetched(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    assert main(["vm", "llama", "--weights", "smollm2", "--tokens", "1"]) == CHECKPOINT
    assert "monocu fetch smollm2" in capsys.readouterr().err


def test_compile_writes_a_file_or_prints_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "good.model"]) == OK
    assert "kernels" in capsys.readouterr().err
    assert main(["compile", "good.model", "-o", "-"]) == OK
    text = capsys.readouterr().out
    assert Path("good.cu").read_text() == text and "__global__" in text


def test_fmt_checks_and_changes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.model").write_text("input x:f32[2,2]\nreturn x+x\n")
    assert main(["fmt", "--check", "good.model"]) == DIFFERENCES
    assert main(["fmt", "good.model"]) == OK
    assert Path("good.model").read_text() == "input x: f32[2, 2]\nreturn x + x\n"
    assert main(["fmt", "--check", "good.model"]) == OK
    assert main(["fmt", *map(str, (ROOT / "examples").glob("*.model")), "--check"]) == OK


def test_ops_doctor_fetch_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops"]) == OK
    table = capsys.readouterr().out
    assert "rmsnorm" in table and "quantize" not in table
    assert main(["ops", "rope"]) == OK and "input" in capsys.readouterr().out
    assert main(["doctor"]) == OK
    report = capsys.readouterr().out
    assert all(word in report for word in ("g++", "nvcc", "MONOCU_CXX", "numpy"))
    assert main(["fetch"]) == OK and "smollm2" in capsys.readouterr().out
    assert main(["--version"]) == OK and capsys.readouterr().out.startswith("monocu ")


def test_explain_shows_every_pass_and_elides_layers(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import passes

    assert main(["explain", "tiny.gguf"]) == OK
    text = capsys.readouterr().out
    assert all(f"== {p.name}: " in text for p in passes.PASSES)
    assert "l0.attend.n" in text and "of the layers behind the first" in text
    assert "== kernels: " in text and "== memory" in text and "launches and" in text
    assert main(["explain", "tiny.gguf", "--all-layers", "--passes", "--hold", "add-norm"]) == OK
    whole = capsys.readouterr().out
    assert "\n  l1.attend.n" in whole and "== add-norm: held back" in whole
