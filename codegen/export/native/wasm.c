/* The allocator and the start function of a WebAssembly module. Included last. */

typedef struct tw_block {
  struct tw_block *next;
  uint32_t bytes; /* including this header */
} tw_block;

enum { HEAD = 64 };

extern unsigned char __heap_base;
static tw_block *free_blocks;
static uint32_t heap_end;

/* Allocate the first free block that fits and split off the rest, or grow the memory. */
static void *wasm_alloc(void *context, int64_t bytes, int64_t alignment) {
  (void)context;
  if (bytes < 0 || bytes > INT64_C(0xf0000000) || alignment > HEAD) return 0;
  uint32_t wanted = (uint32_t)((bytes + 2 * HEAD - 1) / HEAD * HEAD);
  for (tw_block **at = &free_blocks; *at; at = &(*at)->next) {
    tw_block *found = *at;
    if (found->bytes < wanted) continue;
    if (found->bytes >= wanted + 2 * HEAD) {
      tw_block *rest = (tw_block *)((char *)found + wanted);
      rest->bytes = found->bytes - wanted;
      rest->next = found->next;
      found->bytes = wanted;
      *at = rest;
    } else {
      *at = found->next;
    }
    return (char *)found + HEAD;
  }
  if (!heap_end) heap_end = ((uint32_t)(uintptr_t)&__heap_base + HEAD - 1) / HEAD * HEAD;
  uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;
  uint64_t need = (uint64_t)heap_end + wanted;
  if (need > UINT64_C(0xffff0000)) return 0;
  if (need > have &&
      __builtin_wasm_memory_grow(0, (uint32_t)((need - have + 65535) >> 16)) == (uint32_t)-1)
    return 0;
  tw_block *made = (tw_block *)(uintptr_t)heap_end;
  heap_end += wanted;
  made->bytes = wanted;
  return (char *)made + HEAD;
}

/* Insert a block into the list, which is ordered by address, and merge it with its neighbors. */
static void wasm_free(void *context, void *memory) {
  (void)context;
  if (!memory) return;
  tw_block *block = (tw_block *)((char *)memory - HEAD), **at = &free_blocks;
  while (*at && *at < block) at = &(*at)->next;
  block->next = *at;
  *at = block;
  if ((char *)block + block->bytes == (char *)block->next) {
    block->bytes += block->next->bytes;
    block->next = block->next->next;
  }
  for (tw_block *b = free_blocks; b && b < block; b = b->next)
    if ((char *)b + b->bytes == (char *)block) {
      b->bytes += block->bytes;
      b->next = block->next;
      break;
    }
}

static const tw_runtime wasm_runtime = {sizeof wasm_runtime, TW_ABI_VERSION, 0, wasm_alloc, wasm_free,
                                          0, 1, 0, 0};

#define NAMED2(model, name) model##_##name
#define NAMED(model, name) NAMED2(model, name)

/* Allocate memory for arguments, results and weights, aligned to 64 bytes; null on failure. */
TW_EXPORT void *NAMED(TW_NAME, alloc)(int32_t bytes) { return wasm_alloc(0, (uint32_t)bytes, 64); }

TW_EXPORT void NAMED(TW_NAME, free)(void *memory) { wasm_free(0, memory); }

TW_EXPORT void NAMED(TW_NAME, release)(tw_result *result) { tw_release(result); }

#ifndef TW_WEB
/* Open the model with the allocator of the module; flags are those of a tw_runtime. */
TW_EXPORT int32_t NAMED(TW_NAME, start)(const void *weights, int32_t bytes, int32_t flags,
                                        TW_MODEL **model, tw_error *error) {
  tw_runtime runtime = wasm_runtime;
  runtime.flags = (uint32_t)flags;
  return open_model(&runtime, weights, (uint32_t)bytes, model, error);
}
#endif
