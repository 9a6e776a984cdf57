"""Guards: a kernel that runs over a buffer's end, or reads a dead one, ends a sanitizer build.

FAULTS are planted in the emitted text, all of them in one binary: number n is there under
`--host-seed n`. A plain build of the same text runs on to its end with each of them.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import passes
from codegen import guards
from codegen import plan as planning
from compiler import pipeline
from compiler.command.main import main
from compiler.diagnostics import OK
from compiler.target import HOST, NUMERICS, Options
from runtime import toolchain
from tests.guarded import QUICK, sanitized
from tests.replay import replay
from tests.small_models import MODELS, checkpoint, model

# kernel: text of it, where an index is one too far if what is in brackets is there
FAULTS = {
    "repack_rows": "scales[b⟦ + 1⟧] = scale_half<F>(row, k, segment * 4 + b, F::SCALE)",
    "widen_elements": "if (i < count⟦ + 1⟧) to[i]",
    "embed": "y[at⟦ + 1⟧] = embedded",
    "linear_attn_q": "attn_q_out[size_t(first + r) * N0 + n⟦ + 1⟧] = dot",
    "linear_attn_v": "(block, {attn_v⟦ + 1 * Tile<W0>::BYTES⟧});",
    "quantize": "quantize_chunk<D, THREADS>(x_d, row⟦ + 1⟧,",
    "square_sums": "square_sums_chunk<D, THREADS>(x_d, row⟦ + 1⟧,",
    "rope": "b = x[second⟦ + 1⟧]",
    "append": "= x[at⟦ + 1⟧];",
    "attention": "cache_page<KV, HD>(k, stored[mine]⟦ + 1⟧, kv)",
    "silu": "const float x_d = x[at + d⟦ + 1⟧];\n    const float y = x_d / ",
    "wanted_rows": "x[step->want[at / N] * N⟦ + 1⟧ + at % N]",
    "choose_key": "best_of_stride<N, THREADS>(x⟦ + 1⟧ + size_t(row) * N)",
    "rope of what is dead": "d.step, ⟦1 ? b.attn_q_out : ⟧b.attn_q_out_2, b.attend_q",
}
BRACKETS = re.compile(r"⟦(.*?)1(.*?)⟧")
PLANTED = r"\g<1>planted({})\g<2>"
SWITCH = "inline int planted(unsigned n) { return monocu_host::settings().seed == n; }\n"


@cache
def faulty() -> str:
    """The emitted text of a small model, its kernels apart, with every fault in it."""
    options = Options("int8", max_rows=8, max_seqs=2, hold=passes.names(), guard=True)
    text = pipeline.compile_model(model("llama", 1), options, HOST).text
    for number, fault in enumerate(FAULTS.values(), 1):
        old, wrong = BRACKETS.sub("", fault), BRACKETS.sub(PLANTED.format(number), fault)
        assert old in text, old
        text = text.replace(old, wrong)
    return SWITCH + text


def run(binary: Path, seed: int) -> subprocess.CompletedProcess[str]:
    words = ("--weights", str(checkpoint("llama", 1)), "--tokens", "1,2,3,4,5", "-n", "2")
    argv = [str(binary), *words, "--host-seed", str(seed)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def guarded() -> Path:
    return sanitized(faulty())


@pytest.fixture(scope="module")
def plain() -> Path:
    return toolchain.build(faulty(), extra=QUICK[:1])


@pytest.mark.parametrize("kernel", FAULTS)
def test_an_access_outside_of_a_buffer_is_seen(guarded: Path, plain: Path, kernel: str) -> None:
    number = list(FAULTS).index(kernel) + 1
    assert run(plain, number).returncode == 0
    done = run(guarded, number)
    assert done.returncode not in (0, 70)
    assert "AddressSanitizer: use-after-poison" in done.stderr
    assert kernel.split()[0] in done.stderr


def test_without_a_fault_nothing_is_seen(guarded: Path) -> None:
    done = run(guarded, len(FAULTS) + 1)
    assert done.returncode == 0, done.stderr


def test_the_verb_asks_for_guards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts: list[str] = []

    def build(text: str, target: str, archs: object, sanitize: bool) -> Path:
        texts.append(text)
        return Path(__file__)

    monkeypatch.setattr(toolchain, "build", build)
    words = ["build", "rope", "--target", "host", "-o", str(tmp_path / "rope")]
    for more in ([], ["--sanitize"]):
        assert main([*words, *more]) == OK
    assert ["guard_memory" in text for text in texts] == [False, True]


@pytest.mark.parametrize("numerics", NUMERICS)
@pytest.mark.parametrize("name", MODELS)
def test_guards_lie_between_all_parts(name: str, numerics: str) -> None:
    """No two parts of buffers are nearer than a gap, whatever their lives."""
    options = Options(numerics, max_rows=5, max_seqs=3, guard=True)
    program = model(name).program
    lowered, _ = pipeline.lower(program, options, HOST)
    made = planning.plan(lowered, HOST, options, pipeline.names_of(lowered.graph))
    assert replay(made) == []
    rows = {0: 1, -1: 5, -2: 3}
    places = sorted({(s.offset, s.offset + rows[s.lead] * s.nbytes) for s in guards.spans(made)})
    ends = [end for _, end in places]
    starts = [start for start, _ in places[1:]] + [made.buffer_bytes]
    assert all(start - end >= guards.GAP for end, start in zip(ends, starts, strict=True))
