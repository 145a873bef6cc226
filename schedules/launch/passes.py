"""The passes that prepare a kernel for its launch: the first passes of lowering, in order."""

from __future__ import annotations

from typing import Final

from .check_instructions import CheckInstructions
from .check_interblock_memory import CheckInterblockMemory
from .check_parallel_loops import CheckParallelLoops
from .check_shader import CheckShader
from .combine_cross_thread_reductions import CombineCrossThreadReductions
from .compact_thread_buffers import CompactThreadBuffers
from .decompose_reductions import DecomposeReductions
from .lower_virtual_threads import LowerVirtualThreads
from .lowering_pass import Pass
from .mark_atomic_updates import MarkAtomicUpdates
from .realize_blocks import RealizeBlocks
from .split_complex import SplitComplex
from .unify_thread_bindings import UnifyThreadBindings
from .vectorize_reducers import VectorizeReducers

PREPARATION: Final[tuple[Pass, ...]] = (
    CheckInstructions(),
    SplitComplex(),
    VectorizeReducers(),
    MarkAtomicUpdates(),
    CombineCrossThreadReductions(),
    DecomposeReductions(),
    RealizeBlocks(),
    LowerVirtualThreads(),
    UnifyThreadBindings(),
    CheckInterblockMemory(),
    CheckParallelLoops(),
    CheckShader(),
)
"""The passes before temporaries get their scope; CPUs check only the first one for a launch."""

LAUNCH_PASSES: Final[tuple[Pass, ...]] = (*PREPARATION, CompactThreadBuffers())
"""Passes from loop IR to loop IR; each keeps the results of the program."""
