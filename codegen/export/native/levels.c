/* Levels: the code for several kinds of processors, of which a model runs one. Included before shim.c. */

static const char *level_name(int32_t k, const char **missing) {
  if (missing) *missing = 0;
  if (k < 0 || k >= LEVELS) return 0;
  if (missing) *missing = missing_feature(levels[k].features);
  return levels[k].name;
}

/* Find the wanted level or, if that is null or empty, the last one that the processor can execute. */
static int32_t choose_level(const char *wanted, const tw_level **found, tw_error *error) {
  const char *feature = 0;
  int forced = wanted && *wanted;
  for (int32_t k = LEVELS - 1; k >= 0; k--) {
    if (forced && !equal_text(levels[k].name, wanted)) continue;
    *found = &levels[k];
    feature = missing_feature(levels[k].features);
    if (!feature) return TW_OK;
    if (forced) return fail_level_processor(begin(error), feature, wanted);
  }
  if (forced) return fail_level(begin(error), wanted, LEVEL_NAMES);
  return fail_processor(begin(error), feature);
}
