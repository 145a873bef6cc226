/* The code of an exported library between its public functions and the native host flow: the runtime
 * of the host flow, call records, and explanations of failed calls.
 *
 * Included by the generated file of a model, after its tables and messages. Uses no library. */

#define WORDS(address, offset) (*(uint64_t *)((char *)(address) + (offset)))
#define WORD(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ADDRESS(word) ((void *)(uintptr_t)(word))

/* The functions of a model: those of its level. */
#ifdef LEVELS
#define FUNCTION(model, k) (&(model)->level->table[k])
#define FUNCTION_COUNT(model) ((model)->level->count)
#define ORDER(model) ((model)->level->order)
#else
#define FUNCTION(model, k) (&functions[k])
#define FUNCTION_COUNT(model) FUNCTIONS
#define ORDER(model) order
#endif

/* The weights that functions read, with their workspaces. */
typedef struct {
#ifdef REPLACEABLE
  tw_counted counted;
#endif
  uint64_t *instance[FUNCTIONS];
  uint64_t *pointers[FUNCTIONS];
  tw_result *prepared[PREPARED + 1];
  const unsigned char *weights;
} tw_version;

struct TW_MODEL {
  uint64_t table[TABLE_SIZE / 8];
#ifdef REPLACEABLE
  tw_versions versions;
#else
  tw_version version;
#endif
#ifdef LEVELS
  const tw_level *level;
#endif
  tw_runtime runtime;
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

static void free_version(TW_MODEL *model, tw_version *version);

/* The weights of a call: those of the model, or, if they can be replaced, the current version, which
 * remains valid until the call returns it. */
#ifdef REPLACEABLE
static tw_version *enter(TW_MODEL *model) { return (void *)take_version(&model->versions); }

static void leave(TW_MODEL *model, tw_version *version) {
  if (return_version(&version->counted)) free_version(model, version);
}
#else
static tw_version *enter(TW_MODEL *model) { return &model->version; }

static void leave(TW_MODEL *model, tw_version *version) {
  (void)model;
  (void)version;
}
#endif

/* Results are freed through the table of their model, so the model must outlive them. */
static void drop_model(TW_MODEL *model) {
  tw_runtime r = model->runtime;
  if (__atomic_sub_fetch(&model->holders, 1, __ATOMIC_ACQ_REL)) return;
#ifdef REPLACEABLE
  for (int32_t k = 0; k < VERSION_LIMIT; k++) /* of calls that an exception has left */
    if (model->versions.slots[k]) free_version(model, (void *)model->versions.slots[k]);
#endif
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

static void trim_version(TW_MODEL *model, tw_version *version, int64_t keep);
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

/* Call a function with the weights of a version. */
static int32_t call_version(TW_MODEL *model, tw_version *version, int32_t number, uint64_t *call,
                            tw_error *error) {
  const tw_function *f = FUNCTION(model, number);
  uint64_t *results = results_of(f, call);
  int32_t code = f->entry(version->instance[number], call);
  if (code && is_limited(f, code, call)) { /* free the memory of idle workspaces, and try again */
    trim_version(model, version, 0);
#ifdef REPLACEABLE
    if (f->prepares < 0) trim(model, 0); /* the version may be an earlier one */
#endif
    WORDS(call, CALL_SITE) = WORDS(call, CALL_A) = WORDS(call, CALL_B) = 0;
    code = f->entry(version->instance[number], call);
  }
  if (code) {
    int32_t found = explain(f, code, call, error);
    if (code != CODE_CHECK) WORDS(call, CALL_SITE) = UINT64_MAX; /* no check failed */
    return found;
  }
  if (f->prepares >= 0 || WORDS(call, CALL_MODE) & GIVEN) return TW_OK;
  for (int k = 0; k < f->result_count; k++)
    if (results[k]) __atomic_add_fetch(&model->holders, 1, __ATOMIC_RELAXED);
  return TW_OK;
}

static int32_t call_function(TW_MODEL *model, int32_t number, uint64_t *call, tw_error *error) {
  tw_version *version = enter(model);
  int32_t code = call_version(model, version, number, call, error);
  leave(model, version);
  return code;
}

static int32_t check_call(TW_MODEL *model, tw_error *error) {
  clear_error(error);
  return model ? TW_OK : fail_null_model(begin(error));
}
