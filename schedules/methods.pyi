# ruff: noqa: E501, PYI021, PYI041, Q000
# fmt: off
"""Generated from the registry by `python -m tilewright.schedules.stub`: do not edit."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import SymInt
from .handles import BindingRef, BlockRef, BufferRef, FunctionRef, LoopRef
from .step import Step

def install(cls: type[Step]) -> None: ...
def variadic(cls: type[Step]) -> str: ...

class ScheduleMethods:
    def perform(self, step: Step) -> Any: ...
    def get_binding(self, name: str, function: FunctionRef | str | None = None) -> BindingRef:
        """Return a binding or parameter of a graph-level function by name."""
    def get_block(self, name: str, function: FunctionRef | str | None = None) -> BlockRef:
        """Return a block by name."""
    def get_blocks(self, function: FunctionRef | str) -> tuple[BlockRef, ...]:
        """Return all blocks of a function, in program order."""
    def get_buffer(self, name: str, function: FunctionRef | str | None = None) -> BufferRef:
        """Return a buffer by name."""
    def get_buffers(self, block: BlockRef | str) -> tuple[BufferRef, ...]:
        """Return the buffers that a block accesses, those that it only reads first."""
    def get_child_blocks(self, parent: LoopRef | BlockRef | str) -> tuple[BlockRef, ...]:
        """Return the blocks directly inside a loop or a block."""
    def get_consumers(self, block: BlockRef | str) -> tuple[BlockRef, ...]:
        """Return the blocks that read the buffers a block writes."""
    def get_extent(self, loop: LoopRef | str) -> SymInt:
        """Return the number of iterations of a loop, an integer or a symbolic term."""
    def get_function(self, name: str) -> FunctionRef:
        """Return a function of the module by name."""
    def get_functions(self, origin: str | None = None) -> tuple[FunctionRef, ...]:
        """Return the loop-level functions that originate from an operation of the source model."""
    def get_loop(self, name: str, function: FunctionRef | str | None = None) -> LoopRef:
        """Return a loop by the name of its variable."""
    def get_loops(self, block: BlockRef | str) -> tuple[LoopRef, ...]:
        """Return the loops around a block, outermost first."""
    def get_output_blocks(self, function: FunctionRef | str) -> tuple[BlockRef, ...]:
        """Return the blocks that write a parameter of a function."""
    def get_producers(self, block: BlockRef | str) -> tuple[BlockRef, ...]:
        """Return the blocks that write the buffers a block reads."""
    def annotate(
        self, target: LoopRef | BlockRef | str, key: str, value: bool | int | float | str
    ) -> None:
        """Add an annotation to a loop or a block."""
    def unannotate(self, target: LoopRef | BlockRef | str, key: str) -> None:
        """Remove an annotation from a loop or a block."""
    def gradient(
        self, function: FunctionRef | str = ..., variables: Sequence[str] = ..., result: int = 0
    ) -> FunctionRef:
        """Add a function that also returns the gradient of one result of a function."""
    def cache_read(
        self,
        block: BlockRef | str,
        buffer: BufferRef | str | int,
        scope: str = 'local',
        index_map: IndexMap | str | Callable[..., object] | None = None,
    ) -> BlockRef:
        """Copy the region of a buffer that a block reads into a new buffer, and read the copy instead."""
    def cache_write(
        self, block: BlockRef | str, buffer: BufferRef | str | int, scope: str = 'local'
    ) -> BlockRef:
        """Redirect the writes of a block to a new buffer, and copy it to the old buffer afterwards."""
    def collapse_dims(self, function: FunctionRef | str) -> FunctionRef:
        """Collapse adjacent dimensions of a kernel that all accesses iterate jointly."""
    def common_subexpressions(self, function: FunctionRef | str = ...) -> None:
        """Compute values that several bindings compute with equal operands only once."""
    def dead_code(self, function: FunctionRef | str = ...) -> None:
        """Eliminate bindings, functions and constants that no result depends on."""
    def decompose(
        self,
        function: FunctionRef | str = ...,
        bindings: Sequence[BindingRef | str] = ...,
        operators: Sequence[str] = ...,
    ) -> tuple[BindingRef, ...]:
        """Replace calls of operators by their decompositions into other operators."""
    def dispatch_to_library(self, binding: BindingRef | str, library: str) -> BindingRef:
        """Replace a call of an operator by a call of a library function that implements it."""
    def fold_constants(self, function: FunctionRef | str = ..., limit: int = 65536) -> None:
        """Fold operators on constants whose results are small."""
    def fuse_attention(
        self,
        function: FunctionRef | str = ...,
        bindings: Sequence[BindingRef | str] = ...,
        lanes: int = 32,
        rows: int = 14,
    ) -> tuple[FunctionRef, ...]:
        """Compute attention in one kernel that keeps a block of scores instead of all of them."""
    def fuse_ops(
        self, function: FunctionRef | str = ..., bindings: Sequence[BindingRef | str] = ...
    ) -> tuple[FunctionRef, ...]:
        """Group kernel calls that become one kernel, so that intermediate tensors stay inside it."""
    def fuse_tir(self, function: FunctionRef | str = ...) -> tuple[FunctionRef, ...]:
        """Fuse the loop-level functions of each group into one function."""
    def hoist_block(self, block: BlockRef | str) -> FunctionRef:
        """Hoist a block that only depends on inputs out of a kernel, into a new kernel."""
    def legalize(self, function: FunctionRef | str = ...) -> tuple[FunctionRef, ...]:
        """Lower every operator of a function to a call of a loop-level function or of a library."""
    def lift_transforms(
        self, function: FunctionRef | str = ..., keep: Sequence[BindingRef | str] = ...
    ) -> FunctionRef:
        """Move bindings that depend on constants only into a function that runs at load time."""
    def set_scope(self, buffer: BufferRef | str, scope: str) -> None:
        """Set the memory scope of a temporary."""
    def storage_align(self, buffer: BufferRef | str, axis: int, factor: int, offset: int) -> None:
        """Pad the stride of one dimension of a temporary, for example to avoid bank conflicts."""
    def transform_layout(
        self, buffer: BufferRef | str, index_map: IndexMap | str | Callable[..., object]
    ) -> None:
        """Transform the layout of a temporary by a map of its indices."""
    def cooperative_copy(self, copy: BlockRef | str, rows: int = 16, columns: int = 16) -> None:
        """Distribute the copy of a matrix over the threads of a thread block."""
    def default_schedule(self) -> None:
        """Apply the default schedule to everything that is not scheduled yet."""
    def finish_graph(self, function: FunctionRef | str) -> None:
        """Move the packing of weights to load time, remove dead code, and plan memory."""
    def inline_elementwise(self, function: FunctionRef | str) -> None:
        """Inline each element-wise block that has a single consumer, if that is legal."""
    def interchange(self, outer: LoopRef | str, inner: LoopRef | str) -> tuple[LoopRef, LoopRef]:
        """Exchange two loops of a perfect nest."""
    def lower_graph(self, function: FunctionRef | str) -> None:
        """Lower a graph function to calls of fused kernels."""
    def pack(self, product: BlockRef | str, columns: int, group: int = 1) -> BlockRef:
        """Copy the right operand of a matrix product into panels of columns."""
    def register_tile(
        self,
        product: BlockRef | str,
        rows: int,
        columns: int,
        panels: int = 1,
        *,
        group: int = 1,
        intrinsic: str = '',
    ) -> None:
        """Compute a matrix product in tiles whose sums stay in vector registers."""
    def schedule_attention(self, function: FunctionRef | str) -> None:
        """Schedule the kernel of an attention for the vector registers of a CPU."""
    def schedule_columns(self, function: FunctionRef | str) -> None:
        """Schedule reductions of columns for the vector registers of a CPU."""
    def schedule_convolution(self, function: FunctionRef | str) -> None:
        """Schedule a convolution for the vector registers of a CPU."""
    def schedule_copy(self, copy: BlockRef | str, columns: int, group: int = 1) -> None:
        """Vectorize a block that copies an operand, by the packing instruction of the target if any."""
    def schedule_elementwise(self, function: FunctionRef | str) -> None:
        """Schedule element-wise blocks for the vector registers of a CPU."""
    def schedule_gpu_loops(self, function: FunctionRef | str) -> None:
        """Fuse the spatial loops of every nest, and bind them to thread blocks and threads."""
    def schedule_gpu_matmul(self, function: FunctionRef | str) -> None:
        """Tile a matrix product for thread blocks and threads; its epilogue is computed per tile."""
    def schedule_gpu_nests(self, function: FunctionRef | str) -> None:
        """Bind the last spatial loop of every nest to threads, and the others to thread blocks."""
    def schedule_gpu_rows(self, function: FunctionRef | str) -> None:
        """Run each row in one thread block: rows are bound to thread blocks, columns to threads."""
    def schedule_gpu_scan_runs(self, function: FunctionRef | str) -> None:
        """Divide long scans into runs of the threads of a thread block."""
    def schedule_gpu_scans(self, function: FunctionRef | str) -> None:
        """Divide a long scan into parts, each of which one thread block computes."""
    def schedule_gpu_serial(self, function: FunctionRef | str) -> None:
        """Run every nest in one thread."""
    def schedule_kernel(self, function: FunctionRef | str) -> None:
        """Apply the default rule of a kernel's kind, unless the kernel is already scheduled."""
    def schedule_matmul(self, function: FunctionRef | str) -> None:
        """Schedule a matrix product for the vector registers of a CPU."""
    def schedule_nests(self, function: FunctionRef | str) -> None:
        """Vectorize the innermost loop of every nest and run the outermost one in parallel, if legal."""
    def schedule_rows(self, function: FunctionRef | str) -> None:
        """Schedule reductions of rows for the vector registers of a CPU."""
    def schedule_scans(self, function: FunctionRef | str) -> None:
        """Schedule scans for the threads and vector registers of a CPU."""
    def schedule_windows(self, function: FunctionRef | str) -> None:
        """Schedule reductions of windows for the vector registers of a CPU."""
    def tile(
        self, i: LoopRef | str, j: LoopRef | str, sizes: tuple[SymInt | str, SymInt | str] = ...
    ) -> tuple[LoopRef, LoopRef, LoopRef, LoopRef]:
        """Divide the iterations of two nested loops into tiles."""
    def vectorize_block(self, block: BlockRef | str, lanes: int) -> None:
        """Vectorize the innermost loop around a block; a reduction gets one partial result per lane."""
    def vectorize_inner(self, loop: LoopRef | str, lanes: int) -> LoopRef:
        """Vectorize an innermost loop, in vectors of a given length."""
    def vectorize_nest(self, block: BlockRef | str, lanes: int) -> None:
        """Vectorize the innermost loop around a block, and run the outermost one in parallel."""
    def add_unit_loop(self, target: LoopRef | BlockRef | str) -> LoopRef:
        """Add a loop of one iteration around a loop or a block."""
    def bind(self, loop: LoopRef | str, thread: str) -> None:
        """Bind a loop to GPU thread blocks, threads or virtual threads."""
    @overload
    def fuse(self, loops: Sequence[LoopRef | str]) -> LoopRef: ...
    @overload
    def fuse(self, *loops: LoopRef | str) -> LoopRef:
        """Fuse perfectly nested loops into one loop over the product of their extents."""
    def loop_partition(self, loop: LoopRef | str, point: SymInt | str) -> tuple[LoopRef, LoopRef]:
        """Partition a loop into two consecutive loops, and simplify each under its own range."""
    def parallel(self, loop: LoopRef | str) -> None:
        """Execute the iterations of a loop on several threads."""
    @overload
    def reorder(self, loops: Sequence[LoopRef | str]) -> None: ...
    @overload
    def reorder(self, *loops: LoopRef | str) -> None:
        """Reorder loops of a perfect nest."""
    def split(
        self,
        loop: LoopRef | str,
        factors: Sequence[SymInt | str | None],
        tail: Literal['predicate', 'epilogue', 'perfect'] = 'predicate',
    ) -> tuple[LoopRef, ...]:
        """Split a loop into nested loops whose extents multiply to at least the old extent."""
    def unroll(self, loop: LoopRef | str) -> None:
        """Mark a short loop to be unrolled."""
    def vectorize(self, loop: LoopRef | str) -> None:
        """Execute the iterations of a short loop as lanes of a vector."""
    def offload(
        self, value: BindingRef | str, before: BindingRef | str, device: str = 'cpu'
    ) -> tuple[BindingRef, BindingRef]:
        """Keep a tensor in the memory of another device between two of its uses."""
    def plan_memory(self, function: FunctionRef | str = ...) -> FunctionRef:
        """Allocate storage for all intermediate tensors, and reuse it once their live ranges end."""
    def compute_at(self, block: BlockRef | str, loop: LoopRef | str) -> None:
        """Move a producer into a loop of its consumers, computing the region that one iteration reads."""
    def compute_inline(self, block: BlockRef | str) -> None:
        """Inline a producer into its consumers, and remove its block and buffer."""
    def reverse_compute_at(self, block: BlockRef | str, loop: LoopRef | str) -> None:
        """Move a consumer into a loop of its producers, computing the region that one iteration writes."""
    def reverse_compute_inline(self, block: BlockRef | str) -> None:
        """Inline a consumer into its producer, and remove the consumer and the temporary."""
    def decompose_reduction(self, block: BlockRef | str, loop: LoopRef | str) -> BlockRef:
        """Decompose a reduction into a block that initializes the result before a loop, and an update."""
    def rfactor(self, block: BlockRef | str, loop: LoopRef | str) -> BlockRef:
        """Factor a reduction into partial results per iteration of a loop, and a block combining them."""
    def scan_blocks(self, block: BlockRef | str, size: int) -> tuple[BlockRef, BlockRef]:
        """Split a scan into parts that run independently: totals, their scan, and the scans."""
    def sample_categorical(
        self,
        candidates: Sequence[int],
        probabilities: Sequence[float] | None = None,
        decision: int | None = None,
    ) -> int:
        """Draw one of some integers."""
    def sample_compute_location(
        self, block: BlockRef | str, decision: int | None = None
    ) -> LoopRef:
        """Draw a loop to which ``compute_at`` can move a block."""
    def sample_partitioned_tile(
        self,
        loop: LoopRef | str,
        n: int,
        partition_pos: int,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Draw tile sizes of a loop whose inner part is a multiple of a factor."""
    def sample_perfect_tile(
        self,
        loop: LoopRef | str,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """Draw tile sizes of a loop, whose product is the extent of the loop."""
    def assume(
        self,
        function: FunctionRef | str,
        symbol: str,
        multiple_of: int = 1,
        lower: int | None = None,
        upper: int | None = None,
    ) -> None:
        """Assume a range or a divisor of a symbol, and check it whenever the function is entered."""
    def clone_function(
        self, function: FunctionRef | str, call_sites: Sequence[BindingRef | str]
    ) -> FunctionRef:
        """Clone a kernel for some of its call sites."""
    def specialize(
        self,
        function: FunctionRef | str,
        symbol: str,
        lower: int | None = None,
        upper: int | None = None,
        multiple_of: int = 1,
    ) -> FunctionRef:
        """Specialize a kernel for a range of one symbol, as a version that calls choose by a guard."""
    def blockize(self, loop: LoopRef | str) -> BlockRef:
        """Convert a perfect nest around a block into one block."""
    def pad_einsum(self, block: BlockRef | str, padding: Sequence[int]) -> tuple[BlockRef, ...]:
        """Pad the operands of a contraction, so that every extent is a multiple of a tile size."""
    def tensorize(self, target: LoopRef | BlockRef | str, intrinsic: str) -> BlockRef:
        """Map a loop nest to a tensor intrinsic."""
