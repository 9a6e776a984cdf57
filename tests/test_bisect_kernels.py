"""`diff --bisect` on wrong kernels: by their templates, by a guard, in a file by hand.

Builds: small op programs, and one of a tiny model.
"""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import numpy as np
import pytest

import codegen
from codegen import limits, render
from codegen.kernel import Context, Launch, Refusal
from compiler.api.bisecting import Bisection, bisect
from compiler.api.comparing import LOGITS, Observed
from compiler.command.main import main
from compiler.diagnostics import DIFFERENCES, OK
from compiler.graph import Node
from compiler.pipeline import Compiled, Model
from compiler.target import HOST, Options
from frontend.elaborate import elaborate
from passes import glu
from tests.planted_faults import operator, plant, planted, who
from tests.small_models import checkpoint, model

Capture = pytest.CaptureFixture[str]

GATED = """
input x: f32[4, 64]
input z: f32[4, 64] = 0.5
input up: f32[96, 64]
input gate: f32[96, 64] = 0.25
h = linear(x, gate)
y = silu(h) * linear(z, up)
return softmax(y)
"""
CACHED = """
input q: f32[3, 64]
input k: f32[3, 64]
input r: rows[3]
cache c { k [2, 32] }
c.k = append(c.k, heads(k, 2))
return attention(heads(q, 2), c.k, c.k)
"""


def search(text: str, hold: tuple[str, ...] = ()) -> Bisection:
    loaded = Model(elaborate(text, "planted.model"))
    return Bisection(loaded, Options(hold=hold), HOST, {}, None, 0)


def template_with(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str) -> None:
    """A template with one place changed."""
    text = (Path(codegen.__file__).parent / "templates" / name).read_text()
    assert old in text, f"{old} is not in {name}: the test is out of date"
    wrong = jinja2.DictLoader({name: text.replace(old, new)})
    loader = jinja2.ChoiceLoader([wrong, jinja2.PackageLoader("codegen")])
    env = render.environment().overlay(loader=loader)
    monkeypatch.setattr(render, "environment", lambda: env)


def test_right_kernels_are_not_blamed() -> None:
    found = bisect(search(GATED))
    assert found.guilty == ()
    passes_line, binary_line = found.tried
    assert passes_line.endswith("1 changed the graph, all compute the same")
    assert re.fullmatch(r"binary: compared \d+ values: 0 bits differ", binary_line)


def test_a_guard_that_lets_too_much_into_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gate and up of two activations: the graph is right, and no kernel reads both."""
    monkeypatch.setattr(glu, "_are_siblings", lambda a, b: True)
    found = bisect(search(GATED))
    assert who(found) == ["the pass glu"]
    why = "what it makes cannot be planned: planned.model:6:1: error: host cannot compute this: "
    assert found.guilty[0].why.startswith(why.replace("planned.", "planted."))


def test_a_wrong_kernel_of_an_op_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    template_with(monkeypatch, "kernels/linear.cu.j2", "float dot =", "float dot = 0.5f +")
    found = bisect(search(GATED))
    tiles = ", or the kernel repack_input, which wrote tiles of "
    kernels = [f"the kernel linear_{w}{tiles}{w}, and that is in no dump" for w in ("gate", "up")]
    assert who(found) == kernels
    assert found.guilty[0].line == "planted.model:6  h = linear(x, gate)"


def test_who_wrote_a_cache_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    template_with(monkeypatch, "kernels/append.cu.j2", "step->pos[", "1 + step->pos[")
    found = bisect(search(CACHED, hold=("head-epilogue",)))
    assert who(found) == ["the kernel append"]
    assert found.guilty[0].line == "planted.model:6  c.k = append(c.k, heads(k, 2))"


def test_who_wrote_an_earlier_version_of_a_cache_is_named_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dump has what a cache holds behind the run."""
    template_with(monkeypatch, "kernels/append.cu.j2", "step->pos[", "1 + step->pos[")
    *head, attended = CACHED.strip().splitlines()
    lines = [attended.replace("return", "a ="), "c.k = append(c.k, heads(q, 2))", "return a", ""]
    found = bisect(search("\n".join([*head, *lines]), hold=("head-epilogue",)))
    wrote = "the kernel append, which wrote c.k_2, and that is in no dump"
    assert who(found) == [f"the kernel attention, or {wrote}", "the kernel append"]


def test_the_pass_that_made_who_wrote_a_cache_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    template_with(monkeypatch, "kernels/heads.cu.j2", "step->pos[", "1 + step->pos[")
    found = bisect(search(CACHED))
    assert who(found) == ["the kernel heads, which the pass head-epilogue made"]
    assert found.tried[-1].startswith("with --hold head-epilogue: compared ")


def test_a_pass_whose_kernel_cannot_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    held = limits.check

    def check(n: Node, launch: Launch, context: Context) -> None:
        if n.op == "call":
            raise Refusal("too large")
        held(n, launch, context)

    monkeypatch.setattr(limits, "check", check)
    found = bisect(search(GATED))
    assert who(found) == ["the pass elementwise-chain"]
    assert "too large" in found.guilty[0].why


@pytest.mark.parametrize(
    ("wrong", "guilty"),
    [
        ({"glu"}, "the pass glu (glu_ffn_gate_ffn_up)"),
        ({"moe-route"}, "the pass moe-route (no kernel of its own)"),
        ({"glu", "sibling-linear"}, "the pass glu (glu_ffn_gate_ffn_up)"),
        (None, "the plain build"),
    ],
)
def test_passes_are_held_back_where_the_plain_build_alone_is_wrong(
    wrong: set[str] | None, guilty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """wrong: the passes that must all be held back for the logits to be right."""
    logits = np.zeros((1, 2), np.float32)

    def observed(self: Bisection, compiled: Compiled) -> Observed:
        right = wrong is not None and wrong <= set(compiled.options.hold)
        return Observed(compiled, {LOGITS: logits}, {LOGITS: logits if right else logits + 1})

    monkeypatch.setattr(Bisection, "observed", observed)
    llama = Bisection(model("llama"), Options(), HOST, {}, [[1, 2, 3]], 1)
    found = bisect(llama)
    assert who(found) == [guilty]
    assert len(found.tried) <= 2 + 1 + 4


def test_an_edited_file_of_a_model(tmp_path: Path, capfd: Capture) -> None:
    """The command: silu's 1 + exp(-x) is another, in a kernel and nowhere else."""
    path, weights = tmp_path / "llama.cu", str(checkpoint("llama"))
    assert main(["compile", weights, "--dump", "--target", "host", "-o", str(path)]) == OK
    text = path.read_text()
    assert text.count("(1.0f + exp32(-") == 1
    path.write_text(text.replace("(1.0f + exp32(-", "(1.5f + exp32(-"))
    capfd.readouterr()
    words = ["diff", weights, "--tokens", "1,2,3", "-n", "2", "--target", "host"]
    assert main([*words, "--cu", str(path), "--bisect"]) == DIFFERENCES
    tried_passes, binary, guilty, *more = capfd.readouterr().out.splitlines()
    assert tried_passes.startswith("passes, each run on the VM: ")
    assert binary.startswith("binary: l0.")
    assert guilty == "guilty: the kernel glu_ffn_gate_ffn_up, which the pass glu made"
    assert any(re.match(r"  llama\.model:\d+  return linear\(silu\(", line) for line in more)
    assert any("kernel glu(" in line for line in more)
    changes, was, now = more[-3:]
    assert changes == f"  {path} changes of what monocu emits:"
    assert was.startswith("  -") and "1.0f" in was and now.startswith("  +") and "1.5f" in now


def test_diff_itself_names_a_pass_on_whose_fault_vm_and_binary_agree(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Capture
) -> None:
    path = tmp_path / "planted.model"
    path.write_text(GATED)
    plant(monkeypatch, "elementwise-chain", lambda p: planted(p, operator))
    assert main(["diff", str(path), "--target", "host"]) == DIFFERENCES
    report, guilty, why, *_ = capfd.readouterr().out.splitlines()
    assert report.endswith(" values: 0 bits differ")
    assert guilty == "guilty: the pass elementwise-chain" and why.startswith("  y[0, 0]: ")
