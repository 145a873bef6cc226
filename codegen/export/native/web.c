/* The device of a model for WebGPU. It manages buffers, computes the launches of kernels, and calls
 * the page, which issues them. Included last.
 *
 * A buffer has a range of addresses above those of the memory of the module, so that the host flow
 * computes with addresses of the device as with others. */

enum { WEB_UNIT = 256, WEB_MOST_BINDINGS = 16, WEB_TYPE = 15 };

#define WEB_BASE UINT64_C(0x40000000)
#define WEB_END UINT64_C(0xffffff00)
#define WEB_POOLED INT64_C(0x10000000) /* the bytes of unused buffers that are kept */
#define WEB_CALL(name) __attribute__((import_module("webgpu"), import_name(#name))) extern

/* A part of a buffer. */
typedef struct {
  int32_t buffer;
  uint32_t offset, bytes;
} tw_range;

WEB_CALL(create) int32_t web_create(int32_t buffer, uint32_t bytes);
WEB_CALL(destroy) void web_destroy(int32_t buffer);
WEB_CALL(copy) void web_copy_range(int32_t to, uint32_t at, int32_t from, uint32_t offset,
                                   uint32_t bytes);
WEB_CALL(clear) void web_clear(int32_t buffer, uint32_t offset, uint32_t bytes);
WEB_CALL(write) void web_write(int32_t buffer, uint32_t offset, const void *source, uint32_t bytes);
WEB_CALL(dispatch)
void web_dispatch(int32_t shader, const tw_range *ranges, int32_t count, const void *numbers,
                  int32_t bytes, int32_t x, int32_t y, int32_t z);

/* A buffer. Unused ones are kept for allocations of the same size. */
typedef struct {
  uint32_t address, bytes;
  int32_t id, used;
} tw_buffer;

static tw_buffer *web_buffers; /* in the order of the addresses */
static int32_t web_count, web_room, web_ids;
static int64_t web_pooled;
static int32_t web_empty; /* the buffer of the bindings of tensors without elements */

/* The limits of the device, and the error of the last launch or copy that failed. */
static struct {
  uint32_t buffer, binding;
} web_limits;
static struct {
  const char *kernel;
  int64_t bytes;
} web_failure;

/* Insert an unused record before a position; return whether there was memory for it. */
static int web_insert(int32_t position) {
  if (web_count == web_room) {
    int32_t room = web_room ? 2 * web_room : 64;
    tw_buffer *made = wasm_alloc(0, room * (int64_t)sizeof *made, 64);
    if (!made) return 0;
    for (int32_t k = 0; k < web_count; k++) made[k] = web_buffers[k];
    wasm_free(0, web_buffers);
    web_buffers = made;
    web_room = room;
  }
  for (int32_t k = web_count++; k > position; k--) web_buffers[k] = web_buffers[k - 1];
  return 1;
}

static void web_remove(int32_t position) {
  web_destroy(web_buffers[position].id);
  web_count--;
  for (int32_t k = position; k < web_count; k++) web_buffers[k] = web_buffers[k + 1];
}

/* Destroy all unused buffers. */
static void web_trim(void) {
  for (int32_t k = web_count - 1; k >= 0; k--)
    if (!web_buffers[k].used) web_remove(k);
  web_pooled = 0;
}

/* Create a buffer at the first free range of addresses. */
static uint32_t web_make(uint32_t bytes) {
  uint64_t at = WEB_BASE;
  int32_t position = 0;
  for (; position < web_count && web_buffers[position].address - at < bytes; position++)
    at = (uint64_t)web_buffers[position].address + web_buffers[position].bytes;
  if (position == web_count && WEB_END - at < bytes) return 0;
  if (!web_create(web_ids + 1, bytes)) return 0;
  if (!web_insert(position)) {
    web_destroy(web_ids + 1);
    return 0;
  }
  web_buffers[position] = (tw_buffer){(uint32_t)at, bytes, ++web_ids, 1};
  return (uint32_t)at;
}

/* Return the address of a buffer of at least the given bytes, or 0. */
static uint32_t web_take(int64_t bytes) {
  if (bytes < 0 || bytes > web_limits.buffer / WEB_UNIT * WEB_UNIT) return 0;
  uint32_t whole = (uint32_t)((bytes + WEB_UNIT - 1) / WEB_UNIT * WEB_UNIT);
  if (!whole) whole = WEB_UNIT;
  for (int32_t k = 0; k < web_count; k++) {
    tw_buffer *b = &web_buffers[k];
    if (b->used || b->bytes != whole) continue;
    b->used = 1;
    web_pooled -= whole;
    return b->address;
  }
  uint32_t made = web_make(whole);
  if (made || !web_pooled) return made;
  web_trim();
  return web_make(whole);
}

/* Return the position of the buffer that contains an address, or -1. */
static int32_t web_find(uint64_t address) {
  int32_t low = 0, high = web_count;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (web_buffers[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  const tw_buffer *b = &web_buffers[low - 1];
  return low && address - b->address < b->bytes ? low - 1 : -1;
}

static void web_drop(uint64_t address) {
  int32_t k = web_find(address);
  if (k < 0 || !web_buffers[k].used) return;
  web_buffers[k].used = 0;
  web_pooled += web_buffers[k].bytes;
  if (web_pooled > WEB_POOLED) web_trim();
}

/* The functions of the runtime table. */

static void *web_allocate(void *context, int64_t bytes, int64_t alignment, int64_t device,
                          int64_t stream) {
  (void)context, (void)alignment, (void)stream;
  return device ? 0 : ADDRESS(web_take(bytes));
}

static void web_deallocate(void *context, void *memory, int64_t device, int64_t stream) {
  (void)context, (void)device, (void)stream;
  web_drop(WORD(memory));
}

static tw_range web_range(uint64_t address, int64_t bytes) {
  int32_t k = web_find(address);
  if (k < 0) return (tw_range){-1, 0, 0};
  return (tw_range){web_buffers[k].id, (uint32_t)(address - web_buffers[k].address),
                    (uint32_t)bytes};
}

/* Copy between buffers, or from the memory of the module to a buffer. Copies of parts of words have
 * no form in WebGPU; memory plans align tensors to words, so that they copy padding, too. */
static int32_t web_copy(void *context, void *target, void *source, int64_t bytes, int64_t to,
                        int64_t from, int64_t stream) {
  (void)context, (void)stream;
  if (!bytes) return 0;
  if (to || from) return 1;
  tw_range into = web_range(WORD(target), (bytes + 3) / 4 * 4);
  if (into.buffer < 0 || into.offset % 4) return 1;
  if (WORD(source) < WEB_BASE) {
    web_write(into.buffer, into.offset, source, (uint32_t)bytes);
    return 0;
  }
  tw_range out = web_range(WORD(source), into.bytes);
  if (out.buffer < 0 || out.offset % 4) return 1;
  if (out.buffer != into.buffer) {
    web_copy_range(into.buffer, into.offset, out.buffer, out.offset, out.bytes);
    return 0;
  }
  uint32_t middle = web_take(out.bytes); /* a copy within a buffer has no form, either */
  if (!middle) return 1;
  tw_range over = web_range(middle, out.bytes);
  web_copy_range(over.buffer, 0, out.buffer, out.offset, out.bytes);
  web_copy_range(into.buffer, into.offset, over.buffer, 0, out.bytes);
  web_drop(middle);
  return 0;
}

/* Copy a weight, or zeros if its address is 0, to elements of a state. */
static void web_set(void *to, uint64_t from, int64_t bytes) {
  tw_range into = web_range(WORD(to), (bytes + 3) / 4 * 4);
  if (from)
    web_copy(0, to, ADDRESS(from), bytes, 0, 0, 0);
  else if (bytes)
    web_clear(into.buffer, into.offset, into.bytes);
}

/* A binding: the range that the kernel accesses, and the aligned one that is bound. */
typedef struct {
  tw_range exact, bound;
  int32_t written;
  uint32_t copy; /* the address of a copy of the range that is bound instead, or 0 */
} tw_binding;

static int web_overlap(const tw_range *a, const tw_range *b) {
  return a->buffer == b->buffer && a->offset < b->offset + b->bytes &&
         b->offset < a->offset + a->bytes;
}

/* Bind a copy of a range. WebGPU refuses a dispatch whose writable bindings overlap, and all
 * bindings are writable, because one buffer may contain read and written tensors. */
static int web_detach(tw_binding *b) {
  uint32_t bytes = (b->exact.bytes + 3) / 4 * 4;
  b->copy = web_take(bytes);
  if (!b->copy) return 0;
  tw_range whole = web_range(b->copy, bytes);
  web_copy_range(whole.buffer, 0, b->exact.buffer, b->exact.offset, bytes);
  b->bound = whole;
  return 1;
}

/* Compute the binding of a buffer argument; return a code. */
static int32_t web_bind(const tw_shader *shader, int32_t position, uint64_t address, int64_t bytes,
                        tw_binding *b) {
  *b = (tw_binding){{0, 0, 0}, {0, 0, 0}, shader->written[position], 0};
  if (bytes > web_limits.binding) {
    web_failure.bytes = bytes;
    return 2;
  }
  if (bytes <= 0) {
    b->bound = (tw_range){web_empty, (uint32_t)(WEB_UNIT * position), 4};
    b->exact = b->bound;
    return 0;
  }
  b->exact = web_range(address, bytes);
  if (b->exact.buffer < 0 || b->exact.offset % 4) return 1;
  uint32_t end = (uint32_t)((b->exact.offset + bytes + 3) / 4 * 4);
  b->bound = b->exact;
  b->bound.offset = b->exact.offset / WEB_UNIT * WEB_UNIT;
  b->bound.bytes = end - b->bound.offset;
  return 0;
}

/* Bind copies instead of ranges that overlap others, read ones if possible. */
static int32_t web_separate(tw_binding *bound, int32_t count) {
  for (int32_t k = 0; k < count; k++)
    for (int32_t j = 0; j < k; j++) {
      if (!web_overlap(&bound[j].bound, &bound[k].bound)) continue;
      tw_binding *moved = bound[k].written && !bound[j].written ? &bound[j] : &bound[k];
      if (!web_detach(moved)) return 3;
    }
  return 0;
}

/* Start a kernel; the function LAUNCH of the runtime table. */
static int32_t web_launch(void *context, void *record, void *arguments, int64_t count) {
  (void)context;
  const tw_shader *shader = *(const tw_shader **)((char *)record + RECORD_HANDLE);
  int64_t symbols[WEB_SYMBOLS + 1], sizes[WEB_MOST_BINDINGS], grid[3];
  tw_binding bound[WEB_MOST_BINDINGS];
  tw_range ranges[WEB_MOST_BINDINGS];
  unsigned char numbers[WEB_NUMBERS];
  web_failure.kernel = shader->name;
  if (count != shader->symbols + shader->pointers) return 1;
  for (int32_t k = 0; k < 3; k++) grid[k] = (int64_t)WORDS(record, RECORD_GRID + 8 * k);
  if (!grid[0] || !grid[1] || !grid[2]) return 0;
  for (int32_t k = 0; k < shader->symbols; k++) {
    void *at = *(void **)((char *)arguments + 8 * (shader->buffers + k));
    symbols[k] = (int64_t)WORDS(at, 0);
  }
  shader->sizes(symbols, sizes);
  for (int32_t k = 0; k < shader->bindings; k++) {
    int32_t position = shader->bound[k];
    if (position >= shader->buffers) position += shader->symbols;
    void *at = *(void **)((char *)arguments + 8 * position);
    int32_t code = web_bind(shader, k, WORD(*(void **)at), sizes[k], &bound[k]);
    if (code) return code;
  }
  int32_t code = web_separate(bound, shader->bindings);
  if (code) return code;
  int32_t used = 8 * shader->symbols, folds = 1;
  for (int32_t k = 0; k < used; k++) numbers[k] = ((unsigned char *)symbols)[k];
  for (int32_t k = 0; k < shader->bindings; k++, used += 4) {
    ranges[k] = bound[k].bound;
    int empty = sizes[k] <= 0 || bound[k].copy;
    uint32_t word = empty ? 0 : (bound[k].exact.offset - bound[k].bound.offset) / 4;
    *(uint32_t *)(numbers + used) = word;
  }
  for (int32_t k = 0; k < 3; k++, used += 4) *(uint32_t *)(numbers + used) = (uint32_t)grid[k];
  if (shader->folded) folds = (int32_t)((grid[0] + WEB_DISPATCH - 1) / WEB_DISPATCH);
  int32_t x = (int32_t)(grid[0] < WEB_DISPATCH ? grid[0] : WEB_DISPATCH);
  if (grid[0] > (int64_t)WEB_DISPATCH * folds || grid[1] > WEB_DISPATCH ||
      grid[2] * folds > WEB_DISPATCH)
    return 4;
  web_dispatch((int32_t)(shader - shaders), ranges, shader->bindings, numbers, used, x,
               (int32_t)grid[1], (int32_t)grid[2] * folds);
  for (int32_t k = 0; k < shader->bindings; k++) {
    tw_binding *b = &bound[k];
    if (!b->copy) continue;
    if (b->written)
      web_copy_range(b->exact.buffer, b->exact.offset, b->bound.buffer, 0, b->bound.bytes);
    web_drop(b->copy);
  }
  return 0;
}

/* Explain a launch that failed; its code is that of web_launch. */
COLD static int32_t web_explain(tw_writer w, const tw_failure *failure) {
  const char *kernel = web_failure.kernel ? web_failure.kernel : failure->site->text;
  int64_t code = (int64_t)failure->numbers[0];
  if (code == 2) return fail_binding_limit(w, kernel, web_failure.bytes, web_limits.binding);
  return fail_launch(w, kernel, code);
}

/* The record of the device in the runtime table. */
static uint64_t web_device[DEVICE_SIZE / 8];

static void web_fill_table(uint64_t *table) {
  WORDS(web_device, DEVICE_TYPE) = WEB_TYPE;
  WORDS(web_device, DEVICE_ORDINAL) = 0;
  WORDS(web_device, DEVICE_HOST_ALLOC) = WORD(allocate);
  WORDS(web_device, DEVICE_HOST_FREE) = WORD(deallocate);
  WORDS(web_device, DEVICE_STREAM_COUNT) = 1;
  WORDS(table, TABLE_ALLOC) = WORD(web_allocate);
  WORDS(table, TABLE_FREE) = WORD(web_deallocate);
  WORDS(table, TABLE_COPY) = WORD(web_copy);
  WORDS(table, TABLE_LAUNCH) = WORD(web_launch);
  WORDS(table, TABLE_DEVICE) = WORD(web_device);
}

/* Return the address of the handles of the kernels of a function. */
static uint64_t web_handles_of(int32_t function) {
  static uint64_t handles[FUNCTIONS][WEB_KERNELS + 1];
  for (int32_t k = 0; k < web_kernel_counts[function]; k++)
    handles[function][k] = WORD(&shaders[web_kernels[function][k]]);
  return WORD(handles[function]);
}

/* The functions of the page. */

/* The weights: their addresses, the digest of the bytes so far, and their number. */
static sha_digest web_digest;
static int64_t web_seen;
static int32_t web_other_header;

/* Set the limits of the device before all other calls. */
TW_EXPORT void NAMED(TW_NAME, limits)(uint32_t buffer, uint32_t binding) {
  web_limits.buffer = buffer;
  web_limits.binding = binding;
  sha_begin(&web_digest);
}

/* Allocate a buffer; return its address, or 0. */
TW_EXPORT uint32_t NAMED(TW_NAME, take)(uint32_t bytes) { return web_take(bytes); }

TW_EXPORT void NAMED(TW_NAME, drop)(uint32_t address) { web_drop(address); }

/* Return the number of the buffer of an address. */
TW_EXPORT int32_t NAMED(TW_NAME, buffer)(uint32_t address) {
  return web_range(address, 0).buffer;
}

/* Return the offset of an address in its buffer. */
TW_EXPORT uint32_t NAMED(TW_NAME, offset)(uint32_t address) {
  return web_range(address, 0).offset;
}

/* Allocate the buffer of a weight; return its address, or 0. */
TW_EXPORT uint32_t NAMED(TW_NAME, weight)(int32_t k, uint32_t bytes) {
  return (uint32_t)(web_weights[k] = web_take(bytes));
}

/* Compare the next bytes of the file of the weights with the header, and add them to the digest. */
TW_EXPORT void NAMED(TW_NAME, verify)(const unsigned char *data, int32_t bytes, int32_t trusted) {
  int32_t k = 0;
  for (; k < bytes && web_seen < HEADER_SIZE; k++, web_seen++)
    web_other_header |= data[k] != weights_header[web_seen];
  if (!trusted) sha_add(&web_digest, data + k, bytes - k);
  web_seen += bytes - k;
}

/* Check the weights, and open the model. */
TW_EXPORT int32_t NAMED(TW_NAME, open_on_device)(int32_t trusted, TW_MODEL **model,
                                                 tw_error *error) {
  if (web_other_header) return fail_weights_header(begin(error));
  if (web_seen != WEIGHTS_SIZE) return fail_weights_size(begin(error), WEIGHTS_SIZE, web_seen);
  if (!trusted && !sha_matches(&web_digest, weights_digest))
    return fail_weights_digest(begin(error));
  uint32_t empty = web_take(WEB_UNIT * WEB_MOST_BINDINGS);
  if (!empty) return fail_model_memory(begin(error));
  web_empty = web_range(empty, 0).buffer;
  return open_model(&wasm_runtime, 0, 0, model, error);
}

/* Write the error of a failed check of a kernel: its number, the value, and the bound. */
TW_EXPORT void NAMED(TW_NAME, explain)(int32_t function, int32_t shader, int32_t check,
                                       int64_t value, int64_t bound, tw_error *error) {
  const tw_shader *s = &shaders[shader];
  const char *text = s->messages[check - 1];
  tw_writer w = begin(error);
  put_in_function(&w, functions[function].name);
  put(&w, ", kernel '");
  put(&w, s->name);
  put(&w, "': ");
  if (s->bounds[check - 1])
    fail_bounds(w, text, value, bound);
  else if (value < bound)
    fail_range_below(w, text, value, bound);
  else
    fail_range(w, text, value, bound);
}

#ifdef TW_STATE
/* Refuse a state that a failed kernel may have written until it is reset. */
TW_EXPORT void NAMED(TW_NAME, state_fail)(TW_STATE *state) { state->failed = 1; }
#endif
