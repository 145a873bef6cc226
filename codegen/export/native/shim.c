/* The code of an exported library between its public functions and the native host flow. It opens
 * models, runs the preparation functions once, builds call records, and explains failed calls.
 *
 * Included by the generated file of a model, after its tables and messages. Uses no library. */

#define WORDS(address, offset) (*(uint64_t *)((char *)(address) + (offset)))
#define WORD(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ADDRESS(word) ((void *)(uintptr_t)(word))

struct TW_MODEL {
  uint64_t table[TABLE_SIZE / 8];
  uint64_t *instance[FUNCTIONS];
  uint64_t *pointers[FUNCTIONS];
  tw_result *prepared[PREPARED + 1];
  tw_runtime runtime;
  const unsigned char *weights;
  int64_t memory[2]; /* of workspaces: the limit, and the bytes in use */
  int64_t holders; /* the open model, its states, and each result that is not yet released */
};

/* The models whose memory is not yet freed: before it is 0, the library must not be unloaded. */
static int64_t live_models;

/* The first word of a context is the table of the model, whose slot USER points to the model. */
static tw_runtime *runtime_of(void *context) {
  return &((TW_MODEL *)ADDRESS(WORDS(ADDRESS(WORDS(context, 0)), TABLE_USER)))->runtime;
}

/* Allocate memory. An address that is not aligned is freed, and *misaligned is set to the alignment. */
static void *take(const tw_runtime *r, int64_t bytes, int64_t alignment, uint64_t *misaligned) {
  void *memory = r->alloc(r->context, bytes, alignment);
  if (!(WORD(memory) & (uint64_t)(alignment - 1))) return memory;
  r->free(r->context, memory);
  *misaligned = (uint64_t)alignment;
  return 0;
}

/* Exported functions use the memory of one device only: the device and the stream are 0. A failed
 * call reads the alignment from CALL_B, which a failed allocation does not use otherwise. */
static void *allocate(void *context, int64_t bytes, int64_t alignment, int64_t device,
                      int64_t stream) {
  (void)stream;
  return device ? 0 : take(runtime_of(context), bytes, alignment, &WORDS(context, CALL_B));
}

static void deallocate(void *context, void *memory, int64_t device, int64_t stream) {
  tw_runtime *r = runtime_of(context);
  (void)device;
  (void)stream;
  r->free(r->context, memory);
}

/* A parallel loop, and the code of a part of it that failed. */
typedef struct {
  tw_body body;
  void *environment;
  int32_t code;
} tw_loop;

static int32_t run_part(void *environment, int64_t begin, int64_t end, int64_t worker) {
  tw_loop *loop = environment;
  int32_t code = loop->body(loop->environment, begin, end, worker);
  if (code) __atomic_store_n(&loop->code, code, __ATOMIC_RELAXED);
  return code;
}

extern void tw_report(void *call, int32_t code, const char *text, int64_t a, int64_t b);

/* Run a loop by the function of the runtime. A code that no part of the loop returned is one of the
 * host, which cancels the call. */
static int32_t run_parallel(void *context, tw_body body, int64_t stop, void *environment) {
  tw_runtime *r = runtime_of(context);
  if (!r->parallel || r->threads < 2) return body(environment, 0, stop, 0);
  tw_loop loop = {body, environment, 0};
  int32_t code = r->parallel(r->context, run_part, stop, &loop);
  int32_t own = __atomic_load_n(&loop.code, __ATOMIC_RELAXED);
  if (own || !code) return own;
  tw_report(context, CODE_PARALLEL, 0, code, 0);
  return CODE_PARALLEL;
}

static void no_profile(void *context, int64_t launch, int64_t phase) {
  (void)context;
  (void)launch;
  (void)phase;
}

static int32_t no_library(void *context, void *entry, void *operands, int64_t count) {
  (void)context;
  (void)entry;
  (void)operands;
  (void)count;
  return -1;
}

#ifdef TW_WEB /* tensors are in buffers of WebGPU; web.c defines these */
static void web_fill_table(uint64_t *table);
static uint64_t web_handles_of(int32_t function);
static uint32_t web_take(int64_t bytes);
static void web_drop(uint64_t address);
static void web_set(void *to, uint64_t from, int64_t bytes);
static uint64_t web_weights[CONSTANTS + 1];
COLD static int32_t web_explain(tw_writer w, const tw_failure *failure);
#define WEIGHT(weights, index) web_weights[index]
enum { ELEMENTS_UNIT = 256, ELEMENTS_DEVICE = 15 };
#else
#define WEIGHT(weights, index) WORD((weights) + constants[index].offset)
enum { ELEMENTS_UNIT = 64, ELEMENTS_DEVICE = 1 };
#endif

extern void *tw_open_call(uint64_t *call);
extern int32_t tw_copy_memory(void *context, void *target, void *source, int64_t bytes,
                              int64_t to, int64_t from, int64_t stream);
extern void tw_release_result(tw_result *block);
extern void tw_drop_workspaces(uint64_t *call, uint64_t *instance, int64_t slot,
                               int64_t keep);

/* Results are freed through the table of their model, so the model must outlive them. */
static void drop_model(TW_MODEL *model) {
  tw_runtime r = model->runtime;
  if (__atomic_sub_fetch(&model->holders, 1, __ATOMIC_ACQ_REL)) return;
  r.free(r.context, model);
  __atomic_sub_fetch(&live_models, 1, __ATOMIC_RELEASE);
}

static void release_result(tw_result *result) {
  TW_MODEL *model = ADDRESS(WORDS(ADDRESS(WORDS(result->context, 0)), TABLE_USER));
  tw_release_result(result);
  drop_model(model);
}

static void fill_table(TW_MODEL *model) {
  uint64_t *table = model->table;
  for (int k = 0; k < TABLE_SIZE / 8; k++) table[k] = 0;
  WORDS(table, TABLE_VERSION) = TABLE_CURRENT;
  WORDS(table, TABLE_ALLOC) = WORD(allocate);
  WORDS(table, TABLE_FREE) = WORD(deallocate);
  WORDS(table, TABLE_PARALLEL) = WORD(run_parallel);
  WORDS(table, TABLE_ERROR) = WORD(tw_report);
  WORDS(table, TABLE_THREADS) =
      model->runtime.parallel && model->runtime.threads > 1 ? (uint64_t)model->runtime.threads : 1;
  WORDS(table, TABLE_LIBRARY) = WORD(no_library);
  WORDS(table, TABLE_COPY) = WORD(tw_copy_memory);
  WORDS(table, TABLE_PROFILE) = WORD(no_profile);
  WORDS(table, TABLE_RELEASE) = WORD(release_result);
  WORDS(table, TABLE_USER) = WORD(model);
  WORDS(table, TABLE_MEMORY) = WORD(model->memory);
  model->memory[MEMORY_LIMIT / 8] = model->runtime.arena_limit;
  model->memory[MEMORY_USED / 8] = 0;
#ifdef TW_WEB
  web_fill_table(table);
#endif
}

COLD static tw_writer in_function(const tw_function *f, tw_error *error) {
  tw_writer w = begin(error);
  put_in_function(&w, f->name);
  put(&w, ": ");
  return w;
}

COLD static tw_writer in_parameter(const tw_function *f, int32_t position, tw_error *error) {
  tw_writer w = begin(error);
  put_in_parameter(&w, f->name, f->params[position].name, f->params[position].annotation);
  put(&w, ": ");
  if (error) error->parameter = position;
  return w;
}

static int32_t explain_argument(tw_writer w, const tw_param *param, int64_t problem,
                                const tw_tensor *argument) {
  switch (problem) {
    case PROBLEM_DTYPE:
      return fail_dtype(w, param->dtype, argument);
    case PROBLEM_RANK:
      return fail_rank(w, param->rank, argument->ndim, argument);
    case PROBLEM_DEVICE:
      return fail_device(w, "cpu", argument);
    case PROBLEM_STRIDES:
      return fail_strides(w, argument, argument);
    case PROBLEM_ALIGNMENT:
      return fail_alignment(w, param->bytes);
    case PROBLEM_READ_ONLY:
      return fail_read_only(w, param->access);
    default:
      return fail_unsupported(w);
  }
}

static int32_t explain_dimension(tw_writer w, const tw_param *param, const tw_failure *failure,
                                 const tw_tensor *argument) {
  int32_t dim = failure->site->dim;
  int64_t expected = (int64_t)failure->numbers[0], actual = (int64_t)failure->numbers[1];
  if (param->integer) return fail_integer(w, failure, actual);
  if (dim < -1) return fail_element(w, -2 - dim, failure, actual);
  if (dim == -1) return fail_unknown_rank(w, expected, actual, argument);
  return fail_dimension(w, dim, argument, failure, actual);
}

static int32_t explain_program(tw_writer w, const tw_failure *failure) {
  const char *text = failure->site->text;
  int64_t number = (int64_t)failure->numbers[0];
  switch (failure->site->kind) {
    case SITE_BOUND:
      return fail_bound(w, text, failure);
    case SITE_FACT:
      return fail_fact(w, text, failure);
    case SITE_CHECK:
      return fail_check(w, failure, text);
    case SITE_DIVISOR:
      return fail_divisor(w, text, failure);
    case SITE_NEGATIVE:
      return fail_negative_size(w, text, number);
    case SITE_OVERFLOW:
      return fail_overflow(w, text);
    case SITE_MEMORY:
      return fail_memory(w, number, text[0] ? text : "the arena");
    case SITE_GRID:
      return fail_grid(w, text, number, (int64_t)failure->numbers[1]);
    case SITE_DEVICE:
      return fail_device_operation(w, text, failure);
#ifdef TW_WEB
    case SITE_LAUNCH:
      return web_explain(w, failure);
#endif
    default:
      return fail_unknown(w, text, failure);
  }
}

static int32_t explain_kernel(const tw_function *f, int32_t code, uint64_t *call,
                              tw_error *error) {
  int64_t launch = (int64_t)(&WORDS(call, CALL_NUMBERS))[3];
  int64_t a = (int64_t)WORDS(call, CALL_A), b = (int64_t)WORDS(call, CALL_B);
  const char *text = WORDS(call, CALL_TEXT) ? ADDRESS(WORDS(call, CALL_TEXT)) : "no message";
  tw_writer w = begin(error);
  if (launch >= 0 && launch < f->launch_count)
    put_in_kernel(&w, f->name, f->launches[launch].kernel, f->launches[launch].binding);
  else
    put_in_function(&w, f->name);
  put(&w, ": ");
  if (code == CODE_PARALLEL) return fail_canceled(w, a);
  if (code == CODE_BOUNDS) return fail_bounds(w, text, a, b);
  if (code == CODE_RANGE && a < b) return fail_range_below(w, text, a, b);
  if (code == CODE_RANGE) return fail_range(w, text, a, b);
  if (code == CODE_RANGE_UNSIGNED) return fail_range_unsigned(w, text, (uint64_t)a, b);
  return fail_kernel(w, code, text, a, b);
}

static int32_t explain_memory(const tw_function *f, const tw_failure *failure, uint64_t *call,
                              tw_error *error) {
  tw_writer w = in_function(f, error);
  const int64_t *memory = ADDRESS(WORDS(ADDRESS(WORDS(call, CALL_TABLE)), TABLE_MEMORY));
  if (WORDS(call, CALL_B)) return fail_alloc_alignment(w, (int64_t)WORDS(call, CALL_B));
  if (WORDS(call, CALL_A) == SHORT)
    return fail_workspace(w, (int64_t)WORDS(call, CALL_NEEDED),
                          (int64_t)WORDS(call, CALL_WORKSPACE_BYTES));
  if (WORDS(call, CALL_A) == LIMITED)
    return fail_limit(w, (int64_t)failure->numbers[0],
                      __atomic_load_n(&memory[MEMORY_USED / 8], __ATOMIC_RELAXED),
                      memory[MEMORY_LIMIT / 8]);
  return explain_program(w, failure);
}

#ifdef DESTINATIONS
static int32_t explain_output(const tw_function *f, uint64_t *call, int32_t position,
                              tw_error *error);
#else
static int32_t explain_output(const tw_function *f, uint64_t *call, int32_t position,
                              tw_error *error) {
  (void)call;
  (void)position;
  return fail_unsupported(in_function(f, error));
}
#endif

COLD static int32_t explain(const tw_function *f, int32_t code, uint64_t *call, tw_error *error) {
  if (code != CODE_CHECK) return explain_kernel(f, code, call, error);
  const tw_site *site = &f->sites[WORDS(call, CALL_SITE)];
  tw_failure failure = {site, &WORDS(call, CALL_NUMBERS)};
  const tw_param *param = site->param >= 0 ? &f->params[site->param] : 0;
  const tw_tensor *argument = 0;
  if (param && !param->integer)
    argument = ADDRESS(WORDS(call, CALL_OPERANDS + 16 * site->param + 8));
  switch (site->kind) {
    case SITE_ARGUMENT:
      return explain_argument(in_parameter(f, site->param, error), param,
                              (int64_t)failure.numbers[0], argument);
    case SITE_DIMENSION:
      return explain_dimension(in_parameter(f, site->param, error), param, &failure, argument);
    case SITE_OUTPUT:
      return explain_output(f, call, site->other, error);
    case SITE_STRIDE:
      return fail_stride(in_parameter(f, site->param, error), site->dim, &failure,
                         (int64_t)failure.numbers[1]);
    case SITE_ALIAS:
      return fail_alias(in_parameter(f, site->param, error), param->name, param->access,
                        f->params[site->other].name, f->params[site->other].access);
    case SITE_MEMORY:
      return explain_memory(f, &failure, call, error);
    default:
      return explain_program(in_function(f, error), &failure);
  }
}

/* Check that the host flow can read a tensor, apart from its elements: a valid shape. */
static int32_t check_shape(const tw_function *f, int32_t position, const tw_tensor *t,
                            tw_error *error) {
  if (!t) return fail_null_tensor(in_parameter(f, position, error));
  if (t->ndim < 0 || t->ndim > 64)
    return fail_invalid_rank(in_parameter(f, position, error), t->ndim);
  if (t->ndim && !t->shape) return fail_null_shape(in_parameter(f, position, error));
  int64_t elements = 1;
  for (int32_t k = 0; k < t->ndim; k++) {
    int64_t dim = t->shape[k];
    if (dim < 0) return fail_negative_dimension(in_parameter(f, position, error), k, dim);
    if (dim && elements > INT64_C(0x0fffffffffffffff) / dim)
      return fail_too_many_elements(in_parameter(f, position, error), t);
    elements *= dim;
  }
  return TW_OK;
}

static int has_elements(const tw_tensor *t) {
  for (int32_t k = 0; k < t->ndim; k++)
    if (!t->shape[k]) return 0;
  return 1;
}

/* Check that the host flow can read a tensor: no null pointers, and a valid shape. */
static int32_t check_tensor(const tw_function *f, int32_t position, const tw_tensor *t,
                            tw_error *error) {
  int32_t code = check_shape(f, position, t, error);
  if (code) return code;
  if (!t->data && has_elements(t)) return fail_null_data(in_parameter(f, position, error));
  return TW_OK;
}

static void trim(TW_MODEL *model, int64_t keep);

static uint64_t *results_of(const tw_function *f, uint64_t *call) {
  return call + CALL_OPERANDS / 8 + 2 * f->param_count;
}

/* Write the call record without its operands. */
static void begin_call(TW_MODEL *model, const tw_function *f, uint64_t *call) {
  uint64_t *results = results_of(f, call);
  for (int k = 0; k < CALL_OPERANDS / 8; k++) call[k] = 0;
  for (int k = 0; k < f->result_count; k++) results[k] = 0;
  call[0] = WORD(model->table);
}

/* Return whether a call has failed because of arena_limit before any kernel ran. */
static int is_limited(const tw_function *f, int32_t code, uint64_t *call) {
  int64_t site = (int64_t)WORDS(call, CALL_SITE);
  return code == CODE_CHECK && WORDS(call, CALL_A) == LIMITED && site < f->first_written &&
         f->sites[site].kind == SITE_MEMORY;
}

static int32_t call_function(TW_MODEL *model, int32_t number, uint64_t *call, tw_error *error) {
  const tw_function *f = &functions[number];
  uint64_t *results = results_of(f, call);
  int32_t code = f->entry(model->instance[number], call);
  if (code && is_limited(f, code, call)) { /* free the memory of idle workspaces, and try again */
    trim(model, 0);
    WORDS(call, CALL_SITE) = WORDS(call, CALL_A) = WORDS(call, CALL_B) = 0;
    code = f->entry(model->instance[number], call);
  }
  if (code) {
    int32_t found = explain(f, code, call, error);
    if (code != CODE_CHECK) WORDS(call, CALL_SITE) = UINT64_MAX; /* no check failed */
    return found;
  }
  if (WORDS(call, CALL_MODE) & GIVEN) return TW_OK;
  for (int k = 0; k < f->result_count; k++)
    if (results[k]) __atomic_add_fetch(&model->holders, 1, __ATOMIC_RELAXED);
  return TW_OK;
}

static int32_t check_call(TW_MODEL *model, tw_error *error) {
  clear_error(error);
  return model ? TW_OK : fail_null_model(begin(error));
}

#ifndef TW_WEB
static int32_t check_weights(const unsigned char *weights, int64_t bytes, int trusted,
                             tw_error *error) {
  if (!CONSTANTS && !bytes) return TW_OK;
  if (!weights) return fail_null_weights(begin(error));
  if (WORD(weights) % 16) return fail_weights_alignment(begin(error));
  if (bytes != WEIGHTS_SIZE) return fail_weights_size(begin(error), WEIGHTS_SIZE, bytes);
  for (int64_t k = 0; k < HEADER_SIZE; k++)
    if (weights[k] != weights_header[k]) return fail_weights_header(begin(error));
  if (!trusted && !has_digest(weights + HEADER_SIZE, bytes - HEADER_SIZE, weights_digest))
    return fail_weights_digest(begin(error));
  return TW_OK;
}
#endif

/* Free the memory of workspaces that no call uses, until at most keep bytes are in use. */
static void trim(TW_MODEL *model, int64_t keep) {
  uint64_t call[CALL_OPERANDS / 8];
  for (int j = 0; j < CALL_OPERANDS / 8; j++) call[j] = 0;
  call[0] = WORD(model->table);
  tw_open_call(call);
  for (int32_t k = 0; k < FUNCTIONS; k++)
    if (model->instance[k]) tw_drop_workspaces(call, model->instance[k], functions[k].slot, keep);
}

/* No call is running, so that a workspace in use is one of a call that an exception has left. */
static void destroy(TW_MODEL *model) {
  tw_runtime r = model->runtime;
  for (int32_t k = 0; k < PREPARED; k++)
    if (model->prepared[k]) release_result(model->prepared[k]);
  for (int32_t k = 0; k < FUNCTIONS; k++)
    for (int32_t j = 0; model->instance[k] && j < SLOT_COUNT; j++)
      WORDS(model->instance[k], INSTANCE_SLOTS + functions[k].slot * j + SLOT_BUSY) = 0;
  trim(model, -1);
  for (int32_t k = 0; k < FUNCTIONS; k++) {
    if (model->instance[k]) r.free(r.context, model->instance[k]);
    if (model->pointers[k]) r.free(r.context, model->pointers[k]);
  }
  drop_model(model);
}

static uint64_t *zeros(TW_MODEL *model, int64_t bytes, uint64_t *misaligned) {
  uint64_t *memory = take(&model->runtime, bytes, 64, misaligned);
  for (int64_t k = 0; memory && k < bytes / 8; k++) memory[k] = 0;
  return memory;
}

/* Set the constant pointers of every function: to the weights, and to prepared results. */
static int32_t prepare(TW_MODEL *model, const unsigned char *weights, tw_error *error) {
  for (int32_t at = 0; at < FUNCTIONS; at++) {
    int32_t number = order[at];
    const tw_function *f = &functions[number];
    for (int32_t k = 0; k < f->constant_count; k++) {
      int32_t constant = f->constants[k], made = constants[constant].prepared;
      model->pointers[number][k] =
          made < 0 ? WEIGHT(weights, constant) : model->prepared[made]->tensor.data_word;
    }
    if (f->prepares < 0) continue;
    uint64_t call[CALL_OPERANDS / 8 + MOST_RESULTS + 1];
    begin_call(model, f, call);
    int32_t code = call_function(model, number, call, error);
    if (code) return code;
    for (int32_t k = 0; k < f->result_count; k++)
      model->prepared[f->prepares + k] = ADDRESS(call[CALL_OPERANDS / 8 + k]);
  }
  return TW_OK;
}

/* Return the code of an allocation of a model or a state that failed. */
static int32_t fail_allocation(uint64_t misaligned, tw_error *error) {
  if (misaligned) return fail_alloc_alignment(begin(error), (int64_t)misaligned);
  return fail_model_memory(begin(error));
}

/* The first version of tw_runtime ended before this field. */
#define RUNTIME_LEAST (int64_t)__builtin_offsetof(tw_runtime, arena_limit)

static int32_t check_runtime(const tw_runtime *r, tw_error *error) {
  if (!r) return fail_null_runtime(begin(error));
  if (r->size < RUNTIME_LEAST) return fail_runtime_size(begin(error), r->size, RUNTIME_LEAST);
  if (r->version != TW_ABI_VERSION)
    return fail_runtime_version(begin(error), r->version, TW_ABI_VERSION);
  for (int64_t k = (int64_t)sizeof *r; k < r->size; k++)
    if (((const char *)r)[k]) return fail_runtime_fields(begin(error), (int64_t)sizeof *r);
  if (r->flags & ~(uint64_t)TW_TRUST_WEIGHTS)
    return fail_runtime_flags(begin(error), (int64_t)r->flags);
  if (r->size >= (int64_t)sizeof *r && r->arena_limit < 0)
    return fail_arena_limit(begin(error), r->arena_limit);
  if (!r->alloc || !r->free) return fail_null_allocator(begin(error));
  if (r->threads < (r->parallel ? 1 : 0) || (r->parallel && r->threads > MOST_THREADS))
    return fail_threads(begin(error), MOST_THREADS, r->threads);
  return TW_OK;
}

/* Return a runtime with the fields that the caller knows; the others are zero. */
static tw_runtime known_fields(const tw_runtime *r) {
  tw_runtime known = {0};
  for (int64_t k = 0; k < (int64_t)sizeof known && k < r->size; k++)
    ((char *)&known)[k] = ((const char *)r)[k];
  return known;
}

static int32_t open_model(const tw_runtime *runtime, const void *weights, int64_t bytes,
                          TW_MODEL **out, tw_error *error) {
  clear_error(error);
  if (!out) return fail_null_output(begin(error));
  *out = 0;
  int32_t code = check_runtime(runtime, error);
  if (code) return code;
  const char *feature = missing_feature();
  if (feature) return fail_processor(begin(error), feature);
#ifdef TW_WEB
  (void)bytes; /* checked while they were copied to the device */
#else
  code = check_weights(weights, bytes, runtime->flags & TW_TRUST_WEIGHTS, error);
  if (code) return code;
#endif
  uint64_t misaligned = 0;
  TW_MODEL *model = take(runtime, sizeof *model, 64, &misaligned);
  if (!model) return fail_allocation(misaligned, error);
  __atomic_add_fetch(&live_models, 1, __ATOMIC_RELAXED);
  for (int32_t k = 0; k < FUNCTIONS; k++) model->instance[k] = model->pointers[k] = 0;
  for (int32_t k = 0; k < PREPARED; k++) model->prepared[k] = 0;
  model->runtime = known_fields(runtime);
  model->weights = weights;
  model->holders = 1;
  fill_table(model);
  for (int32_t k = 0; k < FUNCTIONS; k++) {
    const tw_function *f = &functions[k];
    model->instance[k] = zeros(model, INSTANCE_SLOTS + SLOT_COUNT * f->slot, &misaligned);
    model->pointers[k] = zeros(model, 8 * (f->constant_count + 1), &misaligned);
    if (!model->instance[k] || !model->pointers[k]) {
      destroy(model);
      return fail_allocation(misaligned, error);
    }
    WORDS(model->instance[k], INSTANCE_CONSTANTS) = WORD(model->pointers[k]);
#ifdef TW_WEB
    WORDS(model->instance[k], INSTANCE_KERNELS) = web_handles_of(k);
#endif
  }
  code = prepare(model, weights, error);
  if (code) {
    destroy(model);
    return code;
  }
  trim(model, 0); /* the memory that the preparation used */
  *out = model;
  return TW_OK;
}

/* Return the number of results and states of a model that are not released. */
static int64_t live_results(const TW_MODEL *model) {
  int64_t own = 1;
  for (int32_t k = 0; k < PREPARED; k++) own += model->prepared[k] != 0;
  return __atomic_load_n(&model->holders, __ATOMIC_ACQUIRE) - own;
}
