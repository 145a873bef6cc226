/* Prints the levels of the small model with the features that the processor lacks, and the level that
 * it runs; then calls it as small.c does. */
#define main run_small
#include "small.c"
#undef main

int main(int argc, char **argv) {
  const char *name, *missing;
  for (int32_t k = 0; (name = small_level_name(k, &missing)); k++)
    printf("%s: %s\n", name, missing ? missing : "runs");
  tw_runtime runtime = tw_stdlib_runtime();
  small_model *model;
  int64_t bytes;
  void *weights = tw_read_file(argv[1], &bytes);
  if (!small_open(&runtime, weights, bytes, &model, 0)) {
    printf("chosen: %s\n", small_variant(model));
    small_close(model);
  }
  free(weights);
  return run_small(argc, argv);
}
