"""The columns of every table on disk, each declared once, with its unit."""

import pyarrow as pa

RESOLUTION = {"confidence": 2.0**-14, "gap": 2.0**-8, "entropy": 2.0**-10}
"""What signals are rounded to, once, where they are made.

Fixed point compresses to half of what raw float32 takes. Recorder and gates see the rounded
numbers and so agree exactly; commit rules see the raw ones, so rounding never changes a decode.
"""
HIGHEST = {"confidence": 1.0, "gap": 2.0**16, "entropy": 22.0}
"""The highest value of each signal; the lowest is 0.

A gap is cut there, far beyond any threshold, because float32 holds no more units exactly. More
entropy than that would take more tokens than int32 can number.
"""

CELLS = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),
        pa.field("step", pa.int16(), nullable=False),  # 1..T
        pa.field("position", pa.int16(), nullable=False),  # 0..L-1, prompt not counted
        pa.field("token", pa.int32(), nullable=False),  # arg-max, masked or not
        pa.field("confidence", pa.float32(), nullable=False),  # softmax at temperature 1
        pa.field("gap", pa.float32(), nullable=False),  # top-1 minus top-2 logit
        pa.field("entropy", pa.float32(), nullable=False),  # nats
        pa.field("masked", pa.bool_(), nullable=False),  # when the step began
    ]
)
"""Sorted by trajectory, then position, then step: a position's history compresses best."""

ROWS = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),  # place in the shuffled split
        pa.field("source_row", pa.int32(), nullable=False),  # place in the source
        pa.field("prompt", pa.string(), nullable=False),
        pa.field("prompt_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("preamble", pa.string(), nullable=False),  # code: what stands before the program
        pa.field("tests", pa.string(), nullable=False),  # code: what stands behind it
        pa.field("choices", pa.list_(pa.string()), nullable=False),  # of letter tasks; else empty
        pa.field("final_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("text", pa.string(), nullable=False),  # up to the first end token
        pa.field("answer", pa.string()),  # null where the text holds none
        pa.field("verdict", pa.string()),  # see `Verdict`; null where it was not graded
        pa.field("style", pa.string()),  # how the answer was read; null where it was not graded
        pa.field("ending", pa.string()),  # likewise
        pa.field("grader", pa.string()),  # who compared it with the gold answer; null likewise
        pa.field("length", pa.int32(), nullable=False),  # L
        pa.field("budget", pa.int32(), nullable=False),  # T
        pa.field("block_length", pa.int32(), nullable=False),  # B
        pa.field("steps", pa.int32(), nullable=False),  # forward passes spent
        pa.field("tokens_before_end", pa.int32(), nullable=False),
        pa.field("wall_seconds", pa.float64(), nullable=False),  # decode and gate
        pa.field("block_steps", pa.list_(pa.int32()), nullable=False),  # (N,); 0: never reached
        pa.field("block_seconds", pa.list_(pa.float64()), nullable=False),  # (N,), wall clock
        pa.field("exit_step", pa.int32()),  # null where no gate fired
        pa.field("committed_by", pa.list_(pa.uint8()), nullable=False),  # (L,), codes of Origin
        pa.field("commit_step", pa.list_(pa.int32()), nullable=False),  # (L,), that stands
        pa.field("revoked", pa.int32(), nullable=False),  # commits that were taken back
    ]
)
"""One row per trajectory, whatever the method."""

GRADES = pa.schema(
    [
        pa.field("trajectory", pa.int32(), nullable=False),
        pa.field("answer", pa.string()),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("style", pa.string(), nullable=False),  # how the answer was read
        pa.field("ending", pa.string(), nullable=False),
        pa.field("grader", pa.string(), nullable=False),  # who compared it with the gold answer
        pa.field("version", pa.string(), nullable=False),  # of c4
        pa.field("number", pa.int32(), nullable=False),  # counts up; the highest counts
    ]
)
"""Grades given after the decode. They are added; what was recorded stays."""

BENCH = pa.schema(
    [
        pa.field("method", pa.string(), nullable=False),
        pa.field("settings", pa.string(), nullable=False),  # JSON: rule and gate, every parameter
        pa.field("identity", pa.string(), nullable=False),  # JSON: as in the manifest of such a run
        pa.field("length", pa.int32(), nullable=False),  # L
        pa.field("budget", pa.int32(), nullable=False),  # T
        pa.field("block_length", pa.int32(), nullable=False),  # B
        pa.field("n", pa.int32(), nullable=False),
        pa.field("passes", pa.int32(), nullable=False),
        pa.field("warmups", pa.int32(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("threads", pa.int32(), nullable=False),
        pa.field("mean_seconds", pa.float64(), nullable=False),  # per example, mean of pass means
        pa.field("cv", pa.float64(), nullable=False),  # of the pass means, in percent
        pa.field("tps", pa.float64(), nullable=False),  # L / mean_seconds
        pa.field("tps_before_end", pa.float64(), nullable=False),
        pa.field("tokens_per_forward", pa.float64(), nullable=False),
        pa.field("mean_steps", pa.float64(), nullable=False),  # forward passes per example
        pa.field("speedup", pa.float64()),  # over the baseline of the same call
        pa.field("step_ratio", pa.float64()),  # the baseline's passes over these
    ]
)
"""One row per method of a timed call."""
