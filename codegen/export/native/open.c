/* Models and their weights: checks, preparation, open, and close. Included after shim.c. */

#ifndef TW_WEB
/* Check weights; if they can be replaced, against the sha256 of their header, which must be the
 * expected one unless that is null. Return in base the address to which offsets of tensors are added:
 * that of the weights, unless their header has another size than that of the exported file. */
static int32_t check_weights(const unsigned char *weights, int64_t bytes, int trusted,
                             const unsigned char *expected, const void **base, tw_error *error) {
  int64_t header = HEADER_SIZE;
  *base = weights;
  if (!CONSTANTS && !bytes) return TW_OK;
  if (!weights) return fail_null_weights(begin(error));
  if (WORD(weights) % 16) return fail_weights_alignment(begin(error));
#ifdef REPLACEABLE
  unsigned char found[32];
  int32_t code = check_schema(weights, bytes, &header, found, error);
  if (code) return code;
  *base = ADDRESS(WORD(weights) + (uint64_t)(header - HEADER_SIZE));
#else
  const unsigned char *found = weights_digest;
  if (bytes != WEIGHTS_SIZE) return fail_weights_size(begin(error), WEIGHTS_SIZE, bytes);
  for (int64_t k = 0; k < HEADER_SIZE; k++)
    if (weights[k] != weights_header[k]) return fail_weights_header(begin(error));
#endif
  for (int32_t k = 0; expected && k < 32; k++)
    if (expected[k] != found[k]) return fail_weights_root(begin(error));
  if (!trusted && !has_digest(weights + header, bytes - header, found))
    return explain_digest(weights, error);
  return TW_OK;
}
#endif

/* Free the memory of workspaces that no call uses, until at most keep bytes are in use. */
static void trim_version(TW_MODEL *model, tw_version *version, int64_t keep) {
  uint64_t call[CALL_OPERANDS / 8];
  for (int j = 0; j < CALL_OPERANDS / 8; j++) call[j] = 0;
  call[0] = WORD(model->table);
  tw_open_call(call);
  for (int32_t k = 0; k < FUNCTION_COUNT(model); k++)
    if (version->instance[k])
      tw_drop_workspaces(call, version->instance[k], FUNCTION(model, k)->slot, keep);
}

static void trim(TW_MODEL *model, int64_t keep) {
  tw_version *version = enter(model);
  trim_version(model, version, keep);
  leave(model, version);
}

/* No call uses the version, so that a workspace in use is one of a call that an exception has left. */
static void free_version(TW_MODEL *model, tw_version *version) {
  tw_runtime *r = &model->runtime;
  for (int32_t k = 0; k < PREPARED; k++)
    if (version->prepared[k]) tw_release_result(version->prepared[k]);
  for (int32_t k = 0; k < FUNCTION_COUNT(model); k++)
    for (int32_t j = 0; version->instance[k] && j < SLOT_COUNT; j++)
      WORDS(version->instance[k], INSTANCE_SLOTS + FUNCTION(model, k)->slot * j + SLOT_BUSY) = 0;
  trim_version(model, version, -1);
  for (int32_t k = 0; k < FUNCTIONS; k++) {
    if (version->instance[k]) r->free(r->context, version->instance[k]);
    if (version->pointers[k]) r->free(r->context, version->pointers[k]);
  }
#ifdef REPLACEABLE
  int64_t slot = version->counted.slot;
  r->free(r->context, version);
  if (slot >= 0) clear_slot(&model->versions, slot);
#endif
}

static uint64_t *zeros(TW_MODEL *model, int64_t bytes, uint64_t *misaligned) {
  uint64_t *memory = take(&model->runtime, bytes, 64, misaligned);
  for (int64_t k = 0; memory && k < bytes / 8; k++) memory[k] = 0;
  return memory;
}

/* Set the constant pointers of every function: to the weights, and to prepared results. */
static int32_t prepare(TW_MODEL *model, tw_version *version, tw_error *error) {
  for (int32_t at = 0; at < FUNCTION_COUNT(model); at++) {
    int32_t number = ORDER(model)[at];
    const tw_function *f = FUNCTION(model, number);
    for (int32_t k = 0; k < f->constant_count; k++) {
      int32_t constant = f->constants[k], made = constants[constant].prepared;
      version->pointers[number][k] = made < 0 ? WEIGHT(version->weights, constant)
                                              : version->prepared[made]->tensor.data_word;
    }
    if (f->prepares < 0) continue;
    uint64_t call[CALL_OPERANDS / 8 + MOST_RESULTS + 1];
    begin_call(model, f, call);
    int32_t code = call_version(model, version, number, call, error);
    if (code) return code;
    for (int32_t k = 0; k < f->result_count; k++)
      version->prepared[f->prepares + k] = ADDRESS(call[CALL_OPERANDS / 8 + k]);
  }
  return TW_OK;
}

/* Return the code of an allocation of a model or a state that failed. */
static int32_t fail_allocation(uint64_t misaligned, tw_error *error) {
  if (misaligned) return fail_alloc_alignment(begin(error), (int64_t)misaligned);
  return fail_model_memory(begin(error));
}

/* Fill a version for checked weights. After an error, the caller frees it. */
static int32_t make_version(TW_MODEL *model, tw_version *version, const void *weights,
                            tw_error *error) {
  uint64_t misaligned = 0;
  for (int32_t k = 0; k < FUNCTIONS; k++) version->instance[k] = version->pointers[k] = 0;
  for (int32_t k = 0; k < PREPARED; k++) version->prepared[k] = 0;
  version->weights = weights;
  for (int32_t k = 0; k < FUNCTION_COUNT(model); k++) {
    const tw_function *f = FUNCTION(model, k);
    version->instance[k] = zeros(model, INSTANCE_SLOTS + SLOT_COUNT * f->slot, &misaligned);
    version->pointers[k] = zeros(model, 8 * (f->constant_count + 1), &misaligned);
    if (!version->instance[k] || !version->pointers[k]) return fail_allocation(misaligned, error);
    WORDS(version->instance[k], INSTANCE_CONSTANTS) = WORD(version->pointers[k]);
#ifdef TW_WEB
    WORDS(version->instance[k], INSTANCE_KERNELS) = web_handles_of(k);
#endif
  }
  int32_t code = prepare(model, version, error);
  if (!code) trim_version(model, version, 0); /* the memory that the preparation used */
  return code;
}

static void destroy(TW_MODEL *model) {
#ifdef REPLACEABLE
  tw_counted *version = replace_version(&model->versions, 0, VERSION_LIMIT, 0);
  if (version) free_version(model, (tw_version *)version);
#else
  free_version(model, &model->version);
#endif
  drop_model(model);
}

/* The first version of tw_runtime ended before this field. */
#define RUNTIME_LEAST (int64_t)__builtin_offsetof(tw_runtime, arena_limit)

/* Return a runtime with the fields that the caller knows; the others are zero. */
static tw_runtime known_fields(const tw_runtime *r) {
  tw_runtime known = {0};
  for (int64_t k = 0; k < (int64_t)sizeof known && k < r->size; k++)
    ((char *)&known)[k] = ((const char *)r)[k];
  return known;
}

static int32_t check_runtime(const tw_runtime *r, tw_error *error) {
  if (!r) return fail_null_runtime(begin(error));
  if (r->size < RUNTIME_LEAST) return fail_runtime_size(begin(error), r->size, RUNTIME_LEAST);
  if (r->version != TW_ABI_VERSION)
    return fail_runtime_version(begin(error), r->version, TW_ABI_VERSION);
  for (int64_t k = (int64_t)sizeof *r; k < r->size; k++)
    if (((const char *)r)[k]) return fail_runtime_fields(begin(error), (int64_t)sizeof *r);
  if (r->flags & ~(uint64_t)TW_TRUST_WEIGHTS)
    return fail_runtime_flags(begin(error), (int64_t)r->flags);
  if (known_fields(r).arena_limit < 0)
    return fail_arena_limit(begin(error), known_fields(r).arena_limit);
  if (!r->alloc || !r->free) return fail_null_allocator(begin(error));
  if (r->threads < (r->parallel ? 1 : 0) || (r->parallel && r->threads > MOST_THREADS))
    return fail_threads(begin(error), MOST_THREADS, r->threads);
  return TW_OK;
}

#ifdef REPLACEABLE
static int32_t add_version(TW_MODEL *model, const void *weights, const void *base, tw_error *error);
#endif

static int32_t open_model(const tw_runtime *runtime, const void *weights, int64_t bytes,
                          TW_MODEL **out, tw_error *error) {
  clear_error(error);
  if (!out) return fail_null_output(begin(error));
  *out = 0;
  const void *base = weights;
  int32_t code = check_runtime(runtime, error);
  if (code) return code;
#ifdef LEVELS
  const tw_level *level = 0;
  code = choose_level(known_fields(runtime).level, &level, error);
  if (code) return code;
#else
  const char *feature = missing_feature(needed_features);
  if (feature) return fail_processor(begin(error), feature);
#endif
#ifdef TW_WEB
  (void)bytes; /* checked while they were copied to the device */
#else
  code = check_weights(weights, bytes, runtime->flags & TW_TRUST_WEIGHTS,
                       known_fields(runtime).expected_root, &base, error);
  if (code) return code;
#endif
  uint64_t misaligned = 0;
  TW_MODEL *model = take(runtime, sizeof *model, 64, &misaligned);
  if (!model) return fail_allocation(misaligned, error);
  __atomic_add_fetch(&live_models, 1, __ATOMIC_RELAXED);
  model->runtime = known_fields(runtime);
  model->holders = 1;
#ifdef LEVELS
  model->level = level;
#endif
  fill_table(model);
#ifdef REPLACEABLE
  begin_versions(&model->versions);
  code = add_version(model, weights, base, error);
#else
  code = make_version(model, &model->version, base, error);
#endif
  if (code) {
    destroy(model);
    return code;
  }
  *out = model;
  return TW_OK;
}

/* Return the number of results and states of a model that are not released. */
static int64_t live_results(const TW_MODEL *model) {
  return __atomic_load_n(&model->holders, __ATOMIC_ACQUIRE) - 1;
}
