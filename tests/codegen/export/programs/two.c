/* Two models in one program: neither sees the other's kernels, weights or support code. */
#define TILEWRIGHT_STDIO
#include "first.h"
#include "second.h"

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  first_model *first;
  second_model *second;
  tw_error error;
  int64_t bytes[2], shape[1] = {3};
  if (argc < 3) return 2;
  void *one = tw_read_file(argv[1], bytes), *two = tw_read_file(argv[2], bytes + 1);
  if (first_open(&runtime, two, bytes[1], &first, &error) != TW_ERROR_WEIGHTS) return 3;
  if (first_open(&runtime, one, bytes[0], &first, &error)) return 4;
  if (second_open(&runtime, two, bytes[1], &second, &error)) return 5;
  float x[3] = {1, 2, 3};
  tw_tensor t = tw_describe(x, shape, 1, 2, 32);
  tw_result *a, *b;
  if (first_main(first, &t, &a, &error) || second_main(second, &t, &b, &error)) {
    printf("%d %s\n", error.code, error.message);
    return 1;
  }
  for (int k = 0; k < 3; k++)
    printf("%g %g\n", ((float *)a->tensor.data)[k], ((float *)b->tensor.data)[k]);
  tw_release(a);
  first_close(first);
  tw_release(b);
  second_close(second);
  free(one);
  free(two);
  return 0;
}
