/* Calls a model with a state, with outputs and a workspace of the caller. */
#define TILEWRIGHT_STDIO
#include "sized.h"

static int64_t allocations, allocated;

static void *counting(void *context, int64_t bytes, int64_t alignment) {
  allocations++;
  allocated += bytes;
  return tw_stdlib_alloc(context, bytes, alignment);
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  sized_model *model;
  sized_state *state;
  tw_error error;
  int64_t bytes, shape[1], sx[2] = {2, 3}, sy[1] = {2}, wrong[1] = {3};
  float x[6] = {0, 1, 2, 3, 4, 5}, y[3];
  if (argc < 2) return 2;
  void *weights = tw_read_file(argv[1], &bytes);
  runtime.alloc = counting;
  if (sized_open(&runtime, weights, bytes, &model, &error)) return puts(error.message), 1;
  tw_tensor tx = tw_describe(x, sx, 2, 2, 32), ty = tw_describe(y, sy, 1, 2, 32);
  tw_needs needs = {sizeof needs, 0, 0, 0};
  if (sized_main_needs(model, &tx, 2, 3, shape, &needs, &error)) return puts(error.message), 1;
  int64_t before = allocated;
  if (sized_state_create(model, 2, 3, &state, &error)) return puts(error.message), 1;
  printf("state: %d %d\n", needs.state_bytes == allocated - before, (int)shape[0]);
  if (sized_main_needs(model, &tx, 3, 3, shape, &needs, &error)) printf("sizes: %s\n", error.message);
  tw_call how = {sizeof how, tw_stdlib_alloc(0, needs.workspace_bytes + 64, 64), 0};
  if (sized_main_into(model, &tx, state, &ty, &how, &error)) printf("short: %d\n", error.code);
  how.workspace_bytes = needs.workspace_bytes;
  before = allocations;
  for (int k = 0; k < 2; k++) {
    if (sized_main_into(model, &tx, state, &ty, &how, &error)) return puts(error.message), 1;
    printf("call: %g %g\n", y[0], y[1]);
  }
  printf("allocations: %d\n", (int)(allocations - before));
  const tw_tensor *seen = sized_state_tensor(state, "seen");
  ty.data = seen->data;
  if (sized_main_into(model, &tx, state, &ty, &how, &error)) printf("alias: %s\n", error.message);
  ty = tw_describe(y, wrong, 1, 2, 32);
  if (sized_main_into(model, &tx, state, &ty, &how, &error)) printf("shape: %s\n", error.message);
  ty.shape = sy;
  if (sized_main_into(model, &tx, 0, &ty, &how, &error)) printf("null: %s\n", error.message);
  if (sized_main_into(model, &tx, state, &ty, &how, &error)) return puts(error.message), 1;
  printf("after: %g %g\n", y[0], y[1]); /* refused calls have not changed the state */
  sized_state_destroy(state);
  sized_close(model);
  free(how.workspace);
  free(weights);
  return 0;
}
