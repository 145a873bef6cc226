/* The dtypes of the results of a model, as DLPack codes. */
#define TILEWRIGHT_STDIO
#include "dtypes.h"

static void show(tw_result *result) {
  const tw_tensor *t = &result->tensor;
  printf("%d %d %d %d.%d:", t->dtype_code, t->dtype_bits, t->dtype_lanes,
         (int)result->major, (int)result->minor);
  for (int k = 0; k < 4; k++) printf(" %02x", ((uint8_t *)t->data)[k]);
  printf("\n");
  tw_release(result);
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  dtypes_model *model;
  tw_error error;
  int64_t bytes, shape[1] = {8};
  float x[8] = {1, -2, 3, 0.5f, 0, 1, 2, 3};
  tw_result *a, *b, *c, *d, *e;
  if (argc < 2) return 2;
  void *weights = tw_read_file(argv[1], &bytes);
  tw_tensor t = tw_describe(x, shape, 1, 2, 32);
  if (dtypes_open(&runtime, weights, bytes, &model, &error) ||
      dtypes_main(model, &t, &a, &b, &c, &d, &e, &error)) {
    printf("%d %s\n", error.code, error.message);
    return 1;
  }
  show(a);
  show(b);
  show(c);
  show(d);
  show(e);
  dtypes_close(model);
  free(weights);
  return 0;
}
