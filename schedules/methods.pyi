# ruff: noqa: E501, PYI021, PYI041, Q000
# fmt: off
"""Generated from the registry by `python -m tilewright.schedules.stub`: not edited by hand."""

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import SymInt
from .primitive import Step
from .refs import BindingRef, BlockRef, BufferRef, FunctionRef, LoopRef

def install(cls: type[Step]) -> None: ...

class ScheduleMethods:
    def perform(self, step: Step) -> Any: ...
    def get_binding(self, name: str, function: str = 'main') -> BindingRef:
        """Find a binding or parameter of a graph-level function by its name."""
    def get_block(self, name: str, function: str | None = None) -> BlockRef:
        """Find a block by its name."""
    def get_blocks(self, function: str) -> tuple[BlockRef, ...]:
        """Find all blocks of a function, in program order."""
    def get_buffer(self, name: str, function: str | None = None) -> BufferRef:
        """Find a buffer by its name."""
    def get_child_blocks(self, parent: LoopRef | BlockRef | str) -> tuple[BlockRef, ...]:
        """Find the blocks directly inside a loop or a block."""
    def get_consumers(self, block: BlockRef | str) -> tuple[BlockRef, ...]:
        """Find the blocks that read what a block writes."""
    def get_function(self, name: str) -> FunctionRef:
        """Find a function of the module by its name."""
    def get_functions(self, origin: str | None = None) -> tuple[FunctionRef, ...]:
        """Find the loop-level functions that came from an operation of the source model."""
    def get_loop(self, name: str, function: str | None = None) -> LoopRef:
        """Find a loop by the name of its variable."""
    def get_loops(self, block: BlockRef | str) -> tuple[LoopRef, ...]:
        """Find the loops around a block, outermost first."""
    def get_output_blocks(self, function: str) -> tuple[BlockRef, ...]:
        """Find the blocks that write a parameter of a function."""
    def get_producers(self, block: BlockRef | str) -> tuple[BlockRef, ...]:
        """Find the blocks that write what a block reads."""
    def annotate(
        self, target: LoopRef | BlockRef | str, key: str, value: bool | int | float | str
    ) -> None:
        """Leave a note on a loop or a block for later steps and for lowering."""
    def unannotate(self, target: LoopRef | BlockRef | str, key: str) -> None:
        """Take a note away from a loop or a block."""
    def cache_read(
        self,
        block: BlockRef | str,
        buffer: BufferRef | str,
        scope: str = 'local',
        index_map: IndexMap | str | Callable[..., object] | None = None,
    ) -> BlockRef:
        """Copy what a block reads of a buffer into a new buffer, and let the block read that."""
    def cache_write(
        self, block: BlockRef | str, buffer: BufferRef | str, scope: str = 'local'
    ) -> BlockRef:
        """Let a block write a new buffer, and copy that out once the block is done."""
    def collapse_dims(self, function: FunctionRef | str) -> FunctionRef:
        """Join adjacent dimensions of a kernel that every access walks side by side."""
    def dead_code(self, function: FunctionRef | str = ...) -> None:
        """Drop bindings, functions and constants that no result depends on."""
    def fold_constants(self, function: FunctionRef | str = ..., limit: int = 65536) -> None:
        """Replace operators on constants by their results, where those are small."""
    def fuse_ops(
        self, function: FunctionRef | str = ..., bindings: Sequence[BindingRef] = ...
    ) -> tuple[FunctionRef, ...]:
        """Group kernels whose intermediate results need not reach memory."""
    def fuse_tir(self, function: FunctionRef | str = ...) -> tuple[FunctionRef, ...]:
        """Join the loop-level functions of each group into one function."""
    def hoist_block(self, block: BlockRef | str) -> FunctionRef:
        """Move a block that only rearranges or combines inputs out of a kernel."""
    def legalize(self, function: FunctionRef | str = ...) -> tuple[FunctionRef, ...]:
        """Replace every operator of a function by a call of its loop-level definition."""
    def lift_transforms(self, function: FunctionRef | str = ...) -> FunctionRef:
        """Move bindings that depend on constants alone into the function ``prepare``."""
    def set_scope(self, buffer: BufferRef | str, scope: str) -> None:
        """Let a temporary live in another kind of memory."""
    def storage_align(self, buffer: BufferRef | str, axis: int, factor: int, offset: int) -> None:
        """Pad the rows of a temporary, so that accesses down a column fall into different banks."""
    def transform_layout(
        self, buffer: BufferRef | str, index_map: IndexMap | str | Callable[..., object]
    ) -> None:
        """Let the elements of a temporary lie in another order, or in more dimensions."""
    def add_unit_loop(self, target: LoopRef | BlockRef | str) -> LoopRef:
        """Put a loop of one iteration around a loop or a block."""
    def bind(self, loop: LoopRef | str, thread: str) -> None:
        """Let the iterations of a loop run as thread blocks or threads of a GPU, or as virtual ones."""
    def fuse(self, loops: Sequence[LoopRef]) -> LoopRef:
        """Make one loop of loops that are directly inside each other."""
    def loop_partition(self, loop: LoopRef | str, point: SymInt | str) -> tuple[LoopRef, LoopRef]:
        """Run a loop in two parts, so that what holds in one of them need not be checked there."""
    def parallel(self, loop: LoopRef | str) -> None:
        """Let the iterations of a loop run at the same time, on several threads."""
    def reorder(self, loops: Sequence[LoopRef]) -> None:
        """Put loops that are nested in one chain into another order."""
    def split(
        self, loop: LoopRef | str, factors: Sequence[SymInt | str | None]
    ) -> tuple[LoopRef, ...]:
        """Cut one loop into nested loops whose extents multiply to at least the old one."""
    def unroll(self, loop: LoopRef | str) -> None:
        """Write out the iterations of a short loop one after the other."""
    def vectorize(self, loop: LoopRef | str) -> None:
        """Compute all iterations of a short loop at once, as lanes of a vector."""
    def plan_memory(self, function: FunctionRef | str = ...) -> FunctionRef:
        """Order a graph, give its tensors storage, and reuse storage whose content is dead."""
    def compute_at(self, block: BlockRef | str, loop: LoopRef | str) -> None:
        """Compute a producer inside a loop of its consumers, as much as one iteration needs."""
    def compute_inline(self, block: BlockRef | str) -> None:
        """Compute a producer's value wherever it is read, and drop the block and its buffer."""
    def reverse_compute_at(self, block: BlockRef | str, loop: LoopRef | str) -> None:
        """Compute a consumer inside a loop of its producers, as far as one iteration has made them."""
    def reverse_compute_inline(self, block: BlockRef | str) -> None:
        """Apply a consumer to its producer's value at once, and drop the consumer and the temporary."""
    def decompose_reduction(self, block: BlockRef | str, loop: LoopRef | str) -> BlockRef:
        """Initialise the results of a reduction in a block of their own, right before a loop."""
    def rfactor(self, block: BlockRef | str, loop: LoopRef | str) -> BlockRef:
        """Let each iteration of a reduction loop keep a partial result, and combine those after."""
    def assume(
        self,
        function: FunctionRef | str,
        symbol: str,
        multiple_of: int = 1,
        lower: int | None = None,
        upper: int | None = None,
    ) -> None:
        """State a range or a divisor of a size, which is checked wherever the kernel is entered."""
    def clone_function(
        self, function: FunctionRef | str, call_sites: Sequence[BindingRef]
    ) -> FunctionRef:
        """Copy a kernel for some of its callers."""
    def specialise(
        self,
        function: FunctionRef | str,
        symbol: str,
        lower: int | None = None,
        upper: int | None = None,
        multiple_of: int = 1,
    ) -> FunctionRef:
        """Copy a kernel for a range of one symbol; calls choose by a guard, the old one is fallback."""
    def blockize(self, loop: LoopRef | str) -> BlockRef:
        """Make one block of a nest of loops and the block inside, a unit to all steps around it."""
    def pad_einsum(self, block: BlockRef | str, padding: Sequence[int]) -> tuple[BlockRef, ...]:
        """Compute a contraction on padded copies, so that every loop is a multiple of a tile."""
    def tensorize(self, target: LoopRef | BlockRef | str, intrinsic: str) -> BlockRef:
        """Let a tensor instruction do the work of a nest of loops."""
