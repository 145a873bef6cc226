/* Calls a model of which the shape of the result depends on the elements of its argument. */
#define TILEWRIGHT_STDIO
#include "small.h"

int main(void) {
  tw_runtime runtime = tw_stdlib_runtime();
  small_model *model;
  tw_error error;
  float x[3] = {1, 0, 2};
  int64_t y[3], n[1] = {3}, shape[2], two[2] = {2, 1}, three[2] = {3, 1};
  if (small_open(&runtime, 0, 0, &model, &error))
    return puts(error.message), 1;
  tw_tensor tx = tw_describe(x, n, 1, 2, 32), ty = tw_describe(y, two, 2, 0, 64);
  tw_needs needs = {sizeof needs, 0, 0, 0};
  int32_t code = small_main_needs(model, &tx, shape, &needs, &error);
  printf("needs: %d, shape (%lld, %lld), flags %llu\n", code, (long long)shape[0],
         (long long)shape[1], (unsigned long long)needs.flags);
  code = small_main_into(model, &tx, &ty, 0, &error);
  printf("fits: %d, elements %lld %lld\n", code, (long long)y[0], (long long)y[1]);
  ty.shape = three;
  code = small_main_into(model, &tx, &ty, 0, &error);
  printf("does not fit: %d %s\n", code, error.message);
  small_close(model);
  return 0;
}
