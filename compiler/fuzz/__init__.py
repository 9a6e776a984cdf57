"""The fuzzer: random well-typed programs, run by VM, host and CUDA, whose bits must be equal.

generate.py makes a Case of a seed; unit.py joins dozens into one translation unit and runs it;
shrink.py makes a failing one small; spell.py writes it as a `.model`. Top floor: imported by the
command and by tests alone.
"""
