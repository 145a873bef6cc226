/* Replacement of the weights of an open model. Included after open.c. */

/* Make checked weights the current version; base is the address that check_weights has returned. */
static int32_t add_version(TW_MODEL *model, const void *weights, const void *base, tw_error *error) {
  tw_versions *versions = &model->versions;
  uint64_t misaligned = 0;
  int64_t slot = free_slot(versions);
  if (slot < 0) return fail_weights_versions(begin(error), VERSION_LIMIT);
  tw_version *version = take(&model->runtime, sizeof *version, 64, &misaligned);
  if (!version) return fail_allocation(misaligned, error);
  version->counted.slot = -1; /* in no slot yet */
  int32_t code = make_version(model, version, base, error);
  if (code) {
    free_version(model, version);
    return code;
  }
  tw_version *old = (tw_version *)replace_version(versions, &version->counted, slot, weights);
  if (old) free_version(model, old);
  return TW_OK;
}

/* Replace the weights of later calls. Running calls and states keep theirs. */
static int32_t update_model(TW_MODEL *model, const void *weights, int64_t bytes,
                            const unsigned char *expected, tw_error *error) {
  int32_t code = check_call(model, error);
  if (code) return code;
  int trusted = (model->runtime.flags & TW_TRUST_WEIGHTS) != 0;
  const void *base;
  code = check_weights(weights, bytes, trusted, expected, &base, error);
  if (code) return code;
  if (__atomic_exchange_n(&model->versions.busy, 1, __ATOMIC_ACQUIRE))
    return fail_weights_busy(begin(error));
  code = add_version(model, weights, base, error);
  __atomic_store_n(&model->versions.busy, 0, __ATOMIC_RELEASE);
  return code;
}
