/* Calls that write results to tensors of the caller, or that use a workspace of the caller, and the
 * memory that they need. Included after the states. */

/* The block of a result, as the host flow makes it: without a deleter, it describes a tensor of the
 * caller, whose address is the context. Shape and strides follow. */
typedef struct {
  uint64_t head[RESULT_HEAD / 8];
  int64_t shape[2 * MOST_RANK];
} tw_block;

/* The addresses of the elements of a tensor. */
typedef struct {
  uint64_t begin, end;
} tw_extent;

COLD static tw_writer in_output(const tw_function *f, int32_t k, tw_error *error) {
  tw_writer w = begin(error);
  put_in_result(&w, f->name, f->outputs[k].name, f->outputs[k].annotation);
  put(&w, ": ");
  return w;
}

static tw_extent extent_of(const tw_tensor *t) {
  tw_extent found = {0, 0};
  uint64_t low = 0, high = 0, step = 1;
  for (int32_t k = t->ndim - 1; k >= 0; k--) {
    if (!t->shape[k]) return found;
    int64_t stride = t->strides ? t->strides[k] : (int64_t)step;
    uint64_t last = (uint64_t)stride * (uint64_t)(t->shape[k] - 1);
    if (stride < 0)
      low += last;
    else
      high += last;
    step *= (uint64_t)t->shape[k];
  }
  found.begin = found.end = WORD(t->data) + t->byte_offset;
  found.begin += t->dtype_bits < 8 ? 0 : low * (t->dtype_bits / 8);
  found.end += t->dtype_bits < 8 ? (step * t->dtype_bits + 7) / 8 : (high + 1) * (t->dtype_bits / 8);
  return found;
}

static int is_shared(tw_extent a, tw_extent b) {
  return a.begin < a.end && b.begin < b.end && a.begin < b.end && b.begin < a.end;
}

static int is_row_major(const tw_tensor *t) {
  int64_t step = 1;
  if (!t->strides || !has_elements(t)) return 1;
  for (int32_t k = t->ndim - 1; k >= 0; k--) {
    if (t->shape[k] != 1 && t->strides[k] != step) return 0;
    step *= t->shape[k];
  }
  return 1;
}

static int32_t check_output(const tw_function *f, int32_t k, const tw_tensor *t, tw_error *error) {
  const tw_output *o = &f->outputs[k];
  if (!t) return fail_null_tensor(in_output(f, k, error));
  if (t->ndim < 0 || t->ndim > 64) return fail_invalid_rank(in_output(f, k, error), t->ndim);
  if (t->ndim && !t->shape) return fail_null_shape(in_output(f, k, error));
  int64_t elements = 1;
  for (int32_t d = 0; d < t->ndim; d++) {
    int64_t dim = t->shape[d];
    if (dim < 0) return fail_negative_dimension(in_output(f, k, error), d, dim);
    if (dim && elements > INT64_C(0x0fffffffffffffff) / dim)
      return fail_too_many_elements(in_output(f, k, error), t);
    elements *= dim;
  }
  if (elements && !t->data) return fail_null_data(in_output(f, k, error));
  if (t->dtype_code != o->code || t->dtype_bits != o->bits || t->dtype_lanes != 1)
    return fail_dtype(in_output(f, k, error), o->dtype, t);
  if (t->ndim != o->rank) return fail_rank(in_output(f, k, error), o->rank, t->ndim, t);
  if (t->device_type != 1 && t->device_type != 3)
    return fail_device(in_output(f, k, error), "cpu", t);
  if (!is_row_major(t)) return fail_strides(in_output(f, k, error), t, t);
  int64_t bytes = o->code == 5 ? o->bits / 16 : o->bits < 8 ? 1 : o->bits / 8;
  if ((WORD(t->data) + t->byte_offset) % (uint64_t)bytes)
    return fail_alignment(in_output(f, k, error), bytes);
  return TW_OK;
}

static const tw_tensor *tensor_at(uint64_t *call, int32_t position) {
  return ADDRESS(WORDS(call, CALL_OPERANDS + 16 * position + 8));
}

/* Check that no output shares memory with an argument or another output. */
static int32_t check_shared(const tw_function *f, uint64_t *call, const tw_tensor *const *outputs,
                            tw_extent workspace, tw_error *error) {
  for (int32_t k = 0; k < f->output_count; k++) {
    tw_extent own = extent_of(outputs[k]);
    for (int32_t j = 0; j < k; j++)
      if (is_shared(own, extent_of(outputs[j])))
        return fail_output_alias(in_output(f, k, error), "result", f->outputs[j].name);
    for (int32_t j = 0; j < f->param_count; j++)
      if (!f->params[j].integer && is_shared(own, extent_of(tensor_at(call, j))))
        return fail_output_alias(in_output(f, k, error), "parameter", f->params[j].name);
    if (is_shared(own, workspace))
      return fail_workspace_alias(in_function(f, error), "result", f->outputs[k].name);
  }
  for (int32_t j = 0; workspace.end && j < f->param_count; j++)
    if (!f->params[j].integer && is_shared(workspace, extent_of(tensor_at(call, j))))
      return fail_workspace_alias(in_function(f, error), "parameter", f->params[j].name);
  return TW_OK;
}

static int32_t check_how(const tw_function *f, const tw_call *how, tw_error *error) {
  if (how->size < (int64_t)sizeof *how)
    return fail_structure_size(in_function(f, error), "tw_call", how->size, (int64_t)sizeof *how);
  for (int64_t k = (int64_t)sizeof *how; k < how->size; k++)
    if (((const char *)how)[k])
      return fail_structure_fields(in_function(f, error), "tw_call", (int64_t)sizeof *how);
  if (how->workspace_bytes < 0)
    return fail_workspace_size(in_function(f, error), how->workspace_bytes);
  if (!how->workspace && how->workspace_bytes)
    return fail_null_workspace(in_function(f, error), how->workspace_bytes);
  if (WORD(how->workspace) % 64) return fail_workspace_alignment(in_function(f, error), 64);
  return TW_OK;
}

static void set_block(tw_block *block, const tw_output *o, const tw_tensor *t) {
  for (int k = 0; k < RESULT_HEAD / 8; k++) block->head[k] = 0;
  for (int k = 0; k < o->rank; k++) block->shape[k] = -1;
  block->head[1] = WORD(t);
  block->head[4] = t ? WORD(t->data) + t->byte_offset : 0;
  block->head[6] = (uint64_t)(uint32_t)o->rank;
}

static int32_t explain_output(const tw_function *f, uint64_t *call, int32_t position,
                              tw_error *error) {
  int32_t k = 0;
  while (f->outputs[k].position != position) k++;
  tw_block *block = ADDRESS(results_of(f, call)[position]);
  tw_tensor wanted = tw_describe(0, block->shape, f->outputs[k].rank, 0, 0);
  return fail_output_shape(in_output(f, k, error), &wanted, ADDRESS(block->head[1]));
}

/* Call a function with tensors of the caller as results, after all checks of the arguments. */
static int32_t call_into(TW_MODEL *model, int32_t number, uint64_t *call,
                         const tw_tensor *const *outputs, void *state, const tw_call *how,
                         tw_error *error) {
  const tw_function *f = FUNCTION(model, number);
  tw_block blocks[MOST_RESULTS + 1];
  tw_extent workspace = {0, 0};
  uint64_t mode = GIVEN;
  int32_t code = how ? check_how(f, how, error) : TW_OK;
  if (code) return code;
  if (how && how->workspace) {
    workspace.begin = WORD(how->workspace);
    workspace.end = workspace.begin + (uint64_t)how->workspace_bytes;
    mode |= EXACT;
    WORDS(call, CALL_WORKSPACE) = workspace.begin;
    WORDS(call, CALL_WORKSPACE_BYTES) = (uint64_t)how->workspace_bytes;
  }
  for (int32_t k = 0; k < f->output_count; k++) {
    if ((code = check_output(f, k, outputs[k], error))) return code;
    set_block(&blocks[k], &f->outputs[k], outputs[k]);
    results_of(f, call)[f->outputs[k].position] = WORD(&blocks[k]);
  }
  WORDS(call, CALL_MODE) = mode;
#ifdef TW_STATE
  if (f->stateful && !state) return fail_null_state(in_function(f, error));
#endif
  if ((code = check_shared(f, call, outputs, workspace, error))) return code;
#ifdef TW_STATE
  if (f->stateful)
    code = call_with_state(model, number, state, call, error);
  else
#endif
    code = call_function(model, number, call, error);
  (void)state;
  return code;
}

/* Replace the elements of arguments, which are not read, by disjoint addresses that are not those of
 * memory, so that tensors without elements are accepted. */
static void hide_elements(const tw_function *f, uint64_t *call, tw_tensor *copies) {
  uint64_t next = UINT64_C(1) << 56;
  for (int32_t k = 0; k < f->param_count; k++) {
    if (f->params[k].integer) continue;
    copies[k] = *tensor_at(call, k);
    WORDS(call, CALL_OPERANDS + 16 * k + 8) = WORD(&copies[k]);
    if (f->params[k].binds) continue;
    copies[k].data = ADDRESS(0);
    copies[k].byte_offset = 0;
    tw_extent extent = extent_of(&copies[k]);
    copies[k].data = ADDRESS(next - extent.begin);
    next += (extent.end - extent.begin + 127) / 64 * 64;
  }
}

static int32_t call_needs(TW_MODEL *model, int32_t number, uint64_t *call, int64_t *const *shapes,
                          int64_t state_bytes, tw_needs *needs, tw_error *error) {
  const tw_function *f = FUNCTION(model, number);
  tw_block blocks[MOST_RESULTS + 1];
  tw_tensor copies[MOST_PARAMS + 1];
  if (!needs) return fail_null_needs(in_function(f, error));
  if (needs->size < (int64_t)sizeof *needs)
    return fail_structure_size(in_function(f, error), "tw_needs", needs->size,
                               (int64_t)sizeof *needs);
  for (int64_t k = (int64_t)sizeof *needs; k < needs->size; k++)
    if (((const char *)needs)[k])
      return fail_structure_fields(in_function(f, error), "tw_needs", (int64_t)sizeof *needs);
  for (int32_t k = 0; k < f->param_count; k++) {
    const tw_param *p = &f->params[k];
    if (p->binds && !tensor_at(call, k)->data && has_elements(tensor_at(call, k)))
      return fail_null_data(in_parameter(f, k, error));
  }
  hide_elements(f, call, copies);
  for (int32_t k = 0; k < f->output_count; k++) {
    set_block(&blocks[k], &f->outputs[k], 0);
    results_of(f, call)[f->outputs[k].position] = WORD(&blocks[k]);
  }
  WORDS(call, CALL_MODE) = QUERY | GIVEN;
  int32_t code = call_function(model, number, call, error);
  if (code) return code;
  needs->workspace_bytes = (int64_t)WORDS(call, CALL_NEEDED);
  needs->state_bytes = state_bytes;
  needs->flags = f->late ? TW_NEEDS_ALLOCATION : 0;
  for (int32_t k = 0; k < f->output_count; k++)
    for (int32_t d = 0; d < f->outputs[k].rank; d++) {
      if (blocks[k].shape[d] < 0) needs->flags |= TW_NEEDS_ELEMENTS;
      if (shapes[k]) shapes[k][d] = blocks[k].shape[d];
    }
  return TW_OK;
}
