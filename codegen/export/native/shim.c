/* The part of an exported library between its public functions and the native host flow: opens a
 * model, runs what is prepared once, describes calls to the host flow and explains its refusals.
 *
 * Included by the generated file of a model, after its tables. Uses no library. */

#define WORDS(address, offset) (*(uint64_t *)((char *)(address) + (offset)))
#define WORD(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ADDRESS(word) ((void *)(uintptr_t)(word))

/* ---------------------------------------------------------------- text */

typedef struct {
  tw_error *error;
  int32_t used;
} tw_writer;

static void put(tw_writer *w, const char *text) {
  if (!w->error) return;
  while (text && *text && w->used < (int32_t)sizeof w->error->message - 1)
    w->error->message[w->used++] = *text++;
  w->error->message[w->used] = 0;
}

static void put_number(tw_writer *w, int64_t value) {
  char digits[24];
  int k = 23;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  digits[k] = 0;
  do {
    digits[--k] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (value < 0) digits[--k] = '-';
  put(w, digits + k);
}

static void clear_error(tw_error *error) {
  if (error) {
    error->code = 0;
    error->parameter = -1;
    error->message[0] = 0;
  }
}

static tw_writer begin(tw_error *error, int32_t code) {
  tw_writer w = {error, 0};
  clear_error(error);
  if (error) error->code = code;
  return w;
}

static int32_t fail(tw_error *error, int32_t code, const char *message) {
  tw_writer w = begin(error, code);
  put(&w, message);
  return code;
}

/* ---------------------------------------------------------------- runtime */

struct TW_MODEL {
  uint64_t table[TABLE_SIZE / 8];
  uint64_t *instance[FUNCTIONS];
  uint64_t *pointers[FUNCTIONS];
  tw_result *prepared[PREPARED + 1];
  tw_runtime runtime;
  int64_t holders; /* the model while it is open, and each result that is not released yet */
};

/* The first word of a context is the model's table, whose last word leads to the model. */
static tw_runtime *runtime_of(void *context) {
  return &((TW_MODEL *)ADDRESS(WORDS(ADDRESS(WORDS(context, 0)), TABLE_USER)))->runtime;
}

static void *give_memory(void *context, int64_t bytes, int64_t alignment) {
  tw_runtime *r = runtime_of(context);
  return r->alloc(r->context, bytes, alignment);
}

static void take_memory(void *context, void *memory) {
  tw_runtime *r = runtime_of(context);
  r->free(r->context, memory);
}

static int32_t share_out(void *context, tw_body body, int64_t stop, void *environment) {
  tw_runtime *r = runtime_of(context);
  if (!r->parallel || r->threads < 2) return body(environment, 0, stop, 0);
  return r->parallel(r->context, body, stop, environment);
}

static void no_time(void *context, int64_t launch, int64_t phase) {
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

extern void *tw_open_call(uint64_t *call);
extern void tw_report(void *call, int32_t code, const char *text, int64_t a, int64_t b);
extern void tw_release_result(tw_result *block);
extern void tw_drop_workspaces(uint64_t *call, uint64_t *instance, int64_t slot);

/* A result is freed through the table of its model, which therefore outlives it. */
static void let_go(TW_MODEL *model) {
  tw_runtime r = model->runtime;
  if (!__atomic_sub_fetch(&model->holders, 1, __ATOMIC_ACQ_REL)) r.free(r.context, model);
}

static void release_result(tw_result *result) {
  TW_MODEL *model = ADDRESS(WORDS(ADDRESS(WORDS(result->context, 0)), TABLE_USER));
  tw_release_result(result);
  let_go(model);
}

static void fill_table(TW_MODEL *model) {
  uint64_t *table = model->table;
  for (int k = 0; k < TABLE_SIZE / 8; k++) table[k] = 0;
  WORDS(table, TABLE_VERSION) = TW_ABI_VERSION;
  WORDS(table, TABLE_ALLOC) = WORD(give_memory);
  WORDS(table, TABLE_FREE) = WORD(take_memory);
  WORDS(table, TABLE_PARALLEL) = WORD(share_out);
  WORDS(table, TABLE_ERROR) = WORD(tw_report);
  WORDS(table, TABLE_THREADS) =
      model->runtime.parallel && model->runtime.threads > 1 ? (uint64_t)model->runtime.threads : 1;
  WORDS(table, TABLE_LIBRARY) = WORD(no_library);
  WORDS(table, TABLE_PROFILE) = WORD(no_time);
  WORDS(table, TABLE_RELEASE) = WORD(release_result);
  WORDS(table, TABLE_USER) = WORD(model);
}

/* ---------------------------------------------------------------- why a call failed */

static void put_place(tw_writer *w, const tw_function *f, int32_t position) {
  put(w, "function '");
  put(w, f->name);
  put(w, "'");
  if (position < 0) return;
  if (w->error) w->error->parameter = position;
  put(w, ", parameter '");
  put(w, f->params[position].name);
  put(w, "' (");
  put(w, f->params[position].annotation);
  put(w, ")");
}

static void put_values(tw_writer *w, const tw_site *site, const uint64_t *numbers) {
  for (int k = 0; k < 4 && site->names[k]; k++) {
    put(w, k ? ", " : ", with ");
    put(w, site->names[k]);
    put(w, " = ");
    put_number(w, (int64_t)numbers[k]);
  }
}

static void put_shape(tw_writer *w, const tw_tensor *t) {
  put(w, "(");
  for (int32_t k = 0; k < t->ndim; k++) {
    if (k) put(w, ", ");
    put_number(w, t->shape[k]);
  }
  put(w, ")");
}

static int32_t explain_argument(tw_writer *w, const tw_function *f, const tw_site *site,
                                int64_t problem, const tw_tensor *given) {
  const tw_param *param = &f->params[site->param];
  static const int32_t codes[] = {TW_ERROR_INTERNAL,  TW_ERROR_DTYPE,     TW_ERROR_RANK,
                                  TW_ERROR_DEVICE,    TW_ERROR_STRIDES,   TW_ERROR_ALIGNMENT,
                                  TW_ERROR_READ_ONLY};
  int32_t code = problem > 0 && problem < 7 ? codes[problem] : TW_ERROR_INTERNAL;
  put_place(w, f, site->param);
  switch (code) {
    case TW_ERROR_DTYPE:
      put(w, ": expected elements of ");
      put(w, param->dtype);
      put(w, ", got DLPack code ");
      put_number(w, given->dtype_code);
      put(w, " of ");
      put_number(w, given->dtype_bits);
      put(w, " bits");
      break;
    case TW_ERROR_RANK:
      put(w, ": expected ");
      put_number(w, param->rank);
      put(w, " dimensions, got ");
      put_number(w, given->ndim);
      break;
    case TW_ERROR_DEVICE:
      put(w, ": expected memory of the processor (device 1), got device ");
      put_number(w, given->device_type);
      break;
    case TW_ERROR_STRIDES:
      put(w, ": expected compact row-major elements of shape ");
      put_shape(w, given);
      break;
    case TW_ERROR_ALIGNMENT:
      put(w, ": expected an address that is a multiple of the size of ");
      put(w, param->dtype);
      break;
    case TW_ERROR_READ_ONLY:
      put(w, ": the function writes it, the argument is read-only");
      break;
    default:
      put(w, ": the argument is not understood");
  }
  return code;
}

static int32_t explain_dimension(tw_writer *w, const tw_function *f, const tw_site *site,
                                 const uint64_t *numbers, const tw_tensor *given) {
  put_place(w, f, site->param);
  if (f->params[site->param].integer) {
    put(w, ": the integer");
  } else if (site->dim < -1) {
    put(w, ": element ");
    put_number(w, -2 - site->dim);
  } else {
    put(w, ": dimension ");
    put_number(w, site->dim);
    if (given) {
      put(w, " of shape ");
      put_shape(w, given);
    }
  }
  put(w, ": expected ");
  put(w, site->text);
  put(w, " = ");
  put_number(w, (int64_t)numbers[0]);
  put(w, ", got ");
  put_number(w, (int64_t)numbers[1]);
  return TW_ERROR_SHAPE;
}

static int32_t explain_program(tw_writer *w, const tw_function *f, const tw_site *site,
                               const uint64_t *numbers) {
  static const struct {
    int32_t code;
    const char *before, *after;
  } kinds[] = {
      [SITE_BOUND] = {TW_ERROR_FACT, ": a symbol is out of its range: ", " fails"},
      [SITE_FACT] = {TW_ERROR_FACT, ": the program assumes ", ""},
      [SITE_CHECK] = {TW_ERROR_CHECK, ": ", " fails"},
      [SITE_DIVISOR] = {TW_ERROR_SIZE, ": division by zero: ", ""},
      [SITE_NEGATIVE] = {TW_ERROR_SIZE, ": a size is negative: ", ""},
      [SITE_OVERFLOW] = {TW_ERROR_SIZE, ": a size is too large to count: ", ""},
      [SITE_MEMORY] = {TW_ERROR_MEMORY, ": no memory for ", ""},
  };
  int32_t known = site->kind >= 0 && site->kind < (int32_t)(sizeof kinds / sizeof *kinds) &&
                  kinds[site->kind].before;
  put_place(w, f, -1);
  put(w, known ? kinds[site->kind].before : ": ");
  put(w, site->text[0] ? site->text : "the arena");
  put(w, known ? kinds[site->kind].after : " fails");
  put_values(w, site, numbers);
  return known ? kinds[site->kind].code : TW_ERROR_INTERNAL;
}

static int32_t explain(const tw_function *f, int32_t code, uint64_t *call, tw_error *error) {
  tw_writer w = begin(error, TW_ERROR_INTERNAL);
  const uint64_t *numbers = &WORDS(call, CALL_NUMBERS);
  int32_t found;
  if (code != CODE_CHECK) {
    const char *text = ADDRESS(WORDS(call, CALL_TEXT));
    put_place(&w, f, -1);
    put(&w, ": ");
    put(&w, text ? text : "a kernel failed");
    put(&w, " (");
    put_number(&w, (int64_t)WORDS(call, CALL_A));
    put(&w, ", ");
    put_number(&w, (int64_t)WORDS(call, CALL_B));
    put(&w, ")");
    found = TW_ERROR_KERNEL;
  } else {
    const tw_site *site = &f->sites[WORDS(call, CALL_SITE)];
    const tw_tensor *given = 0;
    if (site->param >= 0 && !f->params[site->param].integer)
      given = ADDRESS(WORDS(call, CALL_OPERANDS + 16 * site->param + 8));
    switch (site->kind) {
      case SITE_ARGUMENT:
        found = explain_argument(&w, f, site, (int64_t)numbers[0], given);
        break;
      case SITE_DIMENSION:
        found = explain_dimension(&w, f, site, numbers, given);
        break;
      case SITE_STRIDE:
        put_place(&w, f, site->param);
        put(&w, ": wrong stride of dimension ");
        put_number(&w, site->dim);
        found = TW_ERROR_STRIDES;
        break;
      case SITE_ALIAS:
        put_place(&w, f, site->param);
        put(&w, ": it is written and shares memory with '");
        put(&w, f->params[site->other].name);
        put(&w, "'");
        found = TW_ERROR_ALIAS;
        break;
      default:
        found = explain_program(&w, f, site, numbers);
    }
  }
  if (error) error->code = found;
  return found;
}

/* ---------------------------------------------------------------- calls */

static int32_t refuse_tensor(const tw_function *f, int32_t position, const tw_tensor *t,
                             tw_error *error) {
  const char *why = 0;
  if (!t)
    why = ": no tensor was given (null)";
  else if (t->ndim < 0 || t->ndim > 64)
    why = ": a tensor of so many dimensions cannot be";
  else if (t->ndim && !t->shape)
    why = ": the tensor has no shape (null)";
  int64_t elements = 1;
  for (int32_t k = 0; !why && k < t->ndim; k++) {
    if (t->shape[k] < 0) why = ": a dimension is negative";
    if (!why && t->shape[k] && elements > INT64_C(0x0fffffffffffffff) / t->shape[k])
      why = ": it has more elements than memory can hold";
    if (!why) elements *= t->shape[k];
  }
  if (!why && elements && !t->data) why = ": the tensor has no data (null)";
  if (!why) return 0;
  tw_writer w = begin(error, TW_ERROR_NULL);
  put_place(&w, f, position);
  put(&w, why);
  return TW_ERROR_NULL;
}

static int32_t call_function(TW_MODEL *model, int32_t number, uint64_t *call, tw_error *error) {
  const tw_function *f = &functions[number];
  uint64_t *results = call + CALL_OPERANDS / 8 + 2 * f->param_count;
  for (int k = 0; k < CALL_OPERANDS / 8; k++) call[k] = 0;
  for (int k = 0; k < f->result_count; k++) results[k] = 0;
  call[0] = WORD(model->table);
  int32_t code = f->entry(model->instance[number], call);
  if (code) return explain(f, code, call, error);
  for (int k = 0; k < f->result_count; k++)
    if (results[k]) __atomic_add_fetch(&model->holders, 1, __ATOMIC_RELAXED);
  return TW_OK;
}

static int32_t check_call(TW_MODEL *model, tw_error *error) {
  clear_error(error);
  return model ? TW_OK : fail(error, TW_ERROR_NULL, "no model was given (null)");
}

/* ---------------------------------------------------------------- opening and closing */

static int32_t check_weights(const unsigned char *weights, int64_t bytes, int trusted,
                             tw_error *error) {
  tw_writer w;
  if (!CONSTANTS && !bytes) return TW_OK;
  if (!weights) return fail(error, TW_ERROR_WEIGHTS, "no weights were given (null)");
  if (WORD(weights) % 16)
    return fail(error, TW_ERROR_ALIGNMENT, "weights have to begin at a multiple of 16 bytes");
  if (bytes != WEIGHTS_SIZE) {
    w = begin(error, TW_ERROR_WEIGHTS);
    put(&w, "the weights have ");
    put_number(&w, bytes);
    put(&w, " bytes, those of this model have ");
    put_number(&w, WEIGHTS_SIZE);
    return TW_ERROR_WEIGHTS;
  }
  for (int64_t k = 0; k < HEADER_SIZE; k++)
    if (weights[k] != weights_header[k])
      return fail(error, TW_ERROR_WEIGHTS,
                  "the header of the weights is not that of this model's file");
  if (!trusted && !has_digest(weights + HEADER_SIZE, bytes - HEADER_SIZE, weights_digest))
    return fail(error, TW_ERROR_WEIGHTS,
                "the tensors of the weights are not those of this model: their sha256 differs");
  return TW_OK;
}

static void destroy(TW_MODEL *model) {
  tw_runtime r = model->runtime;
  for (int32_t k = 0; k < PREPARED; k++)
    if (model->prepared[k]) release_result(model->prepared[k]);
  for (int32_t k = 0; k < FUNCTIONS; k++) {
    if (model->instance[k]) {
      uint64_t call[CALL_OPERANDS / 8];
      for (int j = 0; j < CALL_OPERANDS / 8; j++) call[j] = 0;
      call[0] = WORD(model->table);
      tw_open_call(call);
      tw_drop_workspaces(call, model->instance[k], functions[k].slot);
      r.free(r.context, model->instance[k]);
    }
    if (model->pointers[k]) r.free(r.context, model->pointers[k]);
  }
  let_go(model);
}

static uint64_t *zeros(TW_MODEL *model, int64_t bytes) {
  uint64_t *memory = model->runtime.alloc(model->runtime.context, bytes, 64);
  for (int64_t k = 0; memory && k < bytes / 8; k++) memory[k] = 0;
  return memory;
}

/* Point every function at its constants: the file's, and what earlier functions prepared. */
static int32_t prepare(TW_MODEL *model, const unsigned char *weights, tw_error *error) {
  for (int32_t at = 0; at < FUNCTIONS; at++) {
    int32_t number = order[at];
    const tw_function *f = &functions[number];
    for (int32_t k = 0; k < f->constant_count; k++) {
      const tw_constant *c = &constants[f->constants[k]];
      model->pointers[number][k] =
          c->prepared < 0 ? WORD(weights + c->offset) : model->prepared[c->prepared]->tensor.data_word;
    }
    if (f->prepares < 0) continue;
    uint64_t call[CALL_OPERANDS / 8 + MOST_RESULTS + 1];
    int32_t code = call_function(model, number, call, error);
    if (code) return code;
    for (int32_t k = 0; k < f->result_count; k++)
      model->prepared[f->prepares + k] = ADDRESS(call[CALL_OPERANDS / 8 + k]);
  }
  return TW_OK;
}

static int32_t open_model(const tw_runtime *runtime, const void *weights, int64_t bytes,
                          TW_MODEL **out, tw_error *error) {
  clear_error(error);
  if (!out) return fail(error, TW_ERROR_NULL, "nowhere to put the model (null)");
  *out = 0;
  if (!runtime) return fail(error, TW_ERROR_NULL, "no runtime was given (null)");
  if (runtime->version != TW_ABI_VERSION) {
    tw_writer w = begin(error, TW_ERROR_VERSION);
    put(&w, "the runtime is of version ");
    put_number(&w, runtime->version);
    put(&w, ", this library needs ");
    put_number(&w, TW_ABI_VERSION);
    return TW_ERROR_VERSION;
  }
  if (runtime->flags & ~(uint64_t)TW_TRUST_WEIGHTS)
    return fail(error, TW_ERROR_VERSION, "the runtime has flags that version 1 does not know");
  if (!runtime->alloc || !runtime->free)
    return fail(error, TW_ERROR_NULL, "the runtime has no alloc or no free (null)");
  if (runtime->parallel && runtime->threads > MOST_THREADS) {
    tw_writer w = begin(error, TW_ERROR_THREADS);
    put(&w, "the runtime has ");
    put_number(&w, runtime->threads);
    put(&w, " threads, this library was made for at most ");
    put_number(&w, MOST_THREADS);
    return TW_ERROR_THREADS;
  }
  const char *lacking = missing_feature();
  if (lacking) {
    tw_writer w = begin(error, TW_ERROR_PROCESSOR);
    put(&w, "this processor has no ");
    put(&w, lacking);
    put(&w, ", which the library was made for");
    return TW_ERROR_PROCESSOR;
  }
  int32_t code = check_weights(weights, bytes, runtime->flags & TW_TRUST_WEIGHTS, error);
  if (code) return code;
  TW_MODEL *model = runtime->alloc(runtime->context, sizeof *model, 64);
  if (!model) return fail(error, TW_ERROR_MEMORY, "no memory for the model");
  for (int32_t k = 0; k < FUNCTIONS; k++) model->instance[k] = model->pointers[k] = 0;
  for (int32_t k = 0; k < PREPARED; k++) model->prepared[k] = 0;
  model->runtime = *runtime;
  model->holders = 1;
  fill_table(model);
  for (int32_t k = 0; k < FUNCTIONS; k++) {
    const tw_function *f = &functions[k];
    model->instance[k] = zeros(model, INSTANCE_SLOTS + SLOT_COUNT * f->slot);
    model->pointers[k] = zeros(model, 8 * (f->constant_count + 1));
    if (!model->instance[k] || !model->pointers[k]) {
      destroy(model);
      return fail(error, TW_ERROR_MEMORY, "no memory for the model");
    }
    WORDS(model->instance[k], INSTANCE_CONSTANTS) = WORD(model->pointers[k]);
  }
  code = prepare(model, weights, error);
  if (code) {
    destroy(model);
    return code;
  }
  *out = model;
  return TW_OK;
}
