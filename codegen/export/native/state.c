/* States: the memory of state parameters between calls. A call has exclusive access to its state;
 * the word busy is exchanged at its begin. A state keeps the weights with which it began, until it is
 * reset. Included after the tables of the states. */

struct TW_STATE {
  TW_MODEL *model;
  tw_version *version; /* the weights of its calls */
  int64_t busy;
  int32_t failed; /* a call failed after it had begun to write */
  tw_tensor tensors[STATES];
  int64_t shapes[STATES][STATE_RANK];
};

COLD static tw_writer in_state(int32_t position, tw_error *error) {
  tw_writer w = begin(error);
  put(&w, "state '");
  put(&w, state_params[position].name);
  put(&w, "' (");
  put(&w, state_params[position].annotation);
  put(&w, "): ");
  return w;
}

/* The bytes of one element; of packed elements, this is 1, and as_bytes divides their number. */
static int64_t element_bytes(int32_t k) {
  return state_params[k].bits < 8 ? 1 : state_params[k].bits / 8;
}

static int64_t as_bytes(int32_t k, int64_t count) {
  return state_params[k].bits < 8 ? (count * state_params[k].bits + 7) / 8 : count;
}

static int64_t state_bytes(const TW_STATE *state, int32_t k) {
  int64_t count = element_bytes(k);
  for (int32_t axis = 0; axis < state_params[k].rank; axis++) count *= state->shapes[k][axis];
  return as_bytes(k, count);
}

/* The memory of the elements: allocate, free, and set it to a weight or, if that is 0, to zeros. */
#ifdef TW_WEB
static void *take_elements(TW_MODEL *model, int64_t bytes, uint64_t *misaligned) {
  (void)model, (void)misaligned;
  return ADDRESS(web_take(bytes));
}

static void free_elements(TW_MODEL *model, void *memory) {
  (void)model;
  web_drop(WORD(memory));
}

static void set_elements(void *to, uint64_t from, int64_t bytes) { web_set(to, from, bytes); }
#else
static void *take_elements(TW_MODEL *model, int64_t bytes, uint64_t *misaligned) {
  return take(&model->runtime, bytes, ELEMENTS_UNIT, misaligned);
}

static void free_elements(TW_MODEL *model, void *memory) {
  model->runtime.free(model->runtime.context, memory);
}

static void set_elements(unsigned char *to, uint64_t from, int64_t bytes) {
  const unsigned char *source = ADDRESS(from);
  for (int64_t j = 0; j < bytes; j++) to[j] = source ? source[j] : 0;
}
#endif

static void set_initial(TW_STATE *state) {
  for (int32_t k = 0; k < STATES; k++) {
    int32_t initial = state_params[k].initial;
    uint64_t from = initial < 0 ? 0 : WEIGHT(state->version->weights, initial);
    set_elements(state->tensors[k].data, from, state_bytes(state, k));
  }
  state->failed = 0;
}

/* Compute the shapes, and the bytes of all tensors; each begins at a multiple of ELEMENTS_UNIT bytes. */
static int32_t measure_state(TW_STATE *state, const int64_t *sizes, int64_t *total,
                             tw_error *error) {
  for (int32_t k = 0; k < STATE_SYMBOLS; k++)
    if (sizes[k] < 0 || sizes[k] > INT64_C(0x7fffffff))
      return fail_state_size(begin(error), state_symbols[k], INT64_C(0x7fffffff), sizes[k]);
  state_shapes(sizes, state->shapes);
  *total = 0;
  for (int32_t k = 0; k < STATES; k++) {
    const tw_state_param *param = &state_params[k];
    tw_tensor *t = &state->tensors[k];
    *t = tw_describe(0, state->shapes[k], param->rank, (uint8_t)param->code, (uint8_t)param->bits);
    t->device_type = ELEMENTS_DEVICE;
    int64_t count = element_bytes(k);
    for (int32_t axis = 0; axis < param->rank; axis++) {
      int64_t dim = state->shapes[k][axis];
      if (dim < 0) return fail_negative_dimension(in_state(k, error), axis, dim);
      if (dim && count > (INT64_C(1) << 56) / dim)
        return fail_too_many_elements(in_state(k, error), t);
      count *= dim;
    }
    *total += (as_bytes(k, count) + ELEMENTS_UNIT - 1) / ELEMENTS_UNIT * ELEMENTS_UNIT;
    if (*total > INT64_C(1) << 57) return fail_too_many_elements(in_state(k, error), t);
  }
  return TW_OK;
}

static int32_t fail_state_memory(int64_t bytes, uint64_t misaligned, tw_error *error) {
  if (misaligned) return fail_alloc_alignment(begin(error), (int64_t)misaligned);
  return fail_memory(begin(error), bytes, "the state");
}

/* The bytes that a state with tensors of this many bytes allocates. */
#define STATE_BYTES(bytes) ((bytes) + 64 + (int64_t)sizeof(TW_STATE))

static int32_t create_state(TW_MODEL *model, const int64_t *sizes, TW_STATE **out,
                            tw_error *error) {
  int32_t code = check_call(model, error);
  if (code) return code;
  if (!out) return fail_null_state(begin(error));
  *out = 0;
  uint64_t misaligned = 0;
  TW_STATE *state = take(&model->runtime, sizeof *state, 64, &misaligned);
  if (!state) return fail_state_memory(sizeof *state, misaligned, error);
  int64_t total = 0;
  code = measure_state(state, sizes, &total, error);
  unsigned char *memory = 0;
  if (!code) {
    memory = take_elements(model, total + ELEMENTS_UNIT, &misaligned);
    if (!memory) code = fail_state_memory(total + ELEMENTS_UNIT, misaligned, error);
  }
  if (code) {
    model->runtime.free(model->runtime.context, state);
    return code;
  }
  state->model = model;
  state->version = enter(model);
  state->busy = 0;
  for (int32_t k = 0; k < STATES; k++) {
    state->tensors[k].data = memory;
    memory += (state_bytes(state, k) + ELEMENTS_UNIT - 1) / ELEMENTS_UNIT * ELEMENTS_UNIT;
  }
  set_initial(state);
  __atomic_add_fetch(&model->holders, 1, __ATOMIC_RELAXED);
  *out = state;
  return TW_OK;
}

static void destroy_state(TW_STATE *state) {
  TW_MODEL *model = state->model;
  free_elements(model, state->tensors[0].data);
  leave(model, state->version);
  model->runtime.free(model->runtime.context, state);
  drop_model(model);
}

static void leave_state(TW_STATE *state) { __atomic_store_n(&state->busy, 0, __ATOMIC_RELEASE); }

/* Return whether no other call uses the state, which this call uses from now on. */
static int enter_state(TW_STATE *state) {
  return !__atomic_exchange_n(&state->busy, 1, __ATOMIC_ACQUIRE);
}

static int32_t reset_state(TW_STATE *state, tw_error *error) {
  clear_error(error);
  if (!state) return fail_null_state(begin(error));
  if (!enter_state(state)) return fail_busy_state(begin(error));
  tw_version *old = state->version, *now = enter(state->model);
  if (now) { /* the model is not closed */
    state->version = now;
    leave(state->model, old);
  }
  set_initial(state);
  leave_state(state);
  return TW_OK;
}

static const tw_tensor *tensor_of_state(TW_STATE *state, const char *name) {
  for (int32_t k = 0; state && name && k < STATES; k++)
    if (equal_text(state_params[k].name, name)) return &state->tensors[k];
  return 0;
}

/* Call a function with a state; after a failure that may have written it, the state is refused. */
static int32_t call_with_state(TW_MODEL *model, int32_t number, TW_STATE *state, uint64_t *call,
                               tw_error *error) {
  const tw_function *f = FUNCTION(model, number);
  if (!state) return fail_null_state(in_function(f, error));
  if (state->model != model) return fail_other_state(in_function(f, error));
  if (!enter_state(state)) return fail_busy_state(in_function(f, error));
  int32_t code = TW_OK;
  if (state->failed) {
    code = fail_failed_state(in_function(f, error));
  } else {
    code = call_version(model, state->version, number, call, error);
    int64_t site = (int64_t)WORDS(call, CALL_SITE);
    if (code && (site < 0 || (f->first_written <= site && site <= f->last_written)))
      state->failed = 1;
  }
  leave_state(state);
  return code;
}
