/* Calls the small model with outputs, workspaces, and limits of the caller, and prints each failure. */
#define TILEWRIGHT_PTHREADS
#include "small.h"
#include <stddef.h>

#define CHECK(condition)                                   \
  do {                                                     \
    if (!(condition)) {                                    \
      printf("line %d: %s\n", __LINE__, #condition);       \
      failures++;                                          \
    }                                                      \
  } while (0)

static int failures;
static int64_t allocations, live;

/* Each block begins with its size. */
static void *counting_alloc(void *context, int64_t bytes, int64_t alignment) {
  char *memory = tw_stdlib_alloc(context, bytes + 64, alignment < 64 ? 64 : alignment);
  if (!memory) return 0;
  *(int64_t *)memory = bytes;
  __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&live, bytes, __ATOMIC_RELAXED);
  return memory + 64;
}

static void counting_free(void *context, void *memory) {
  (void)context;
  if (!memory) return;
  __atomic_sub_fetch(&live, *(int64_t *)((char *)memory - 64), __ATOMIC_RELAXED);
  free((char *)memory - 64);
}

static void fill(float *x, int64_t count, int64_t seed) {
  for (int64_t k = 0; k < count; k++) x[k] = (float)((k * 37 + seed * 11) % 41 - 20) / 8.0f;
}

static int same(const float *a, const float *b, int64_t count) {
  for (int64_t k = 0; k < count; k++)
    if (a[k] != b[k]) return 0;
  return 1;
}

static float px[64 * 24], py[64 * 40 + 65536], pc[64 * 40], pd[64];
static int64_t sx[2] = {64, 24}, sy[2] = {64, 40}, sd[1] = {64};

typedef struct {
  small_model *model;
  int64_t good, limited, other;
} worker;

static void *work(void *argument) {
  worker *own = argument;
  float c[64 * 40], d[64];
  tw_tensor x = tw_describe(px, sx, 2, 2, 32), y = tw_describe(py, sy, 2, 2, 32);
  tw_tensor tc = tw_describe(c, sy, 2, 2, 32), td = tw_describe(d, sd, 1, 2, 32);
  for (int k = 0; k < 400; k++) {
    tw_error error;
    int32_t code = small_main_into(own->model, &x, &y, &tc, &td, 0, &error);
    if (!code && same(c, pc, 64 * 40) && same(d, pd, 64))
      own->good++;
    else if (code == TW_ERROR_LIMIT)
      own->limited++;
    else
      own->other++;
  }
  return 0;
}

static void report(const char *name, int32_t code, const tw_error *error) {
  printf("%s: %d %d %s\n", name, code, error->parameter, error->message);
}

int main(int argc, char **argv) {
  int64_t bytes, shape_c[2], shape_d[1], opened;
  tw_error error;
  small_model *model;
  if (argc < 2) return 2;
  void *weights = tw_read_file(argv[1], &bytes);
  tw_runtime runtime = tw_stdlib_runtime();
  runtime.alloc = counting_alloc;
  runtime.free = counting_free;
  if (small_open(&runtime, weights, bytes, &model, &error)) return puts(error.message), 1;
  opened = live;

  fill(px, 64 * 24, 1);
  fill(py, 64 * 40, 2);
  tw_tensor x = tw_describe(px, sx, 2, 2, 32), y = tw_describe(py, sy, 2, 2, 32);
  tw_result *c, *d;
  CHECK(!small_main(model, &x, &y, &c, &d, &error));
  for (int k = 0; k < 64 * 40; k++) pc[k] = ((float *)c->tensor.data)[k];
  for (int k = 0; k < 64; k++) pd[k] = ((float *)d->tensor.data)[k];
  tw_release(c);
  tw_release(d);

  /* needs reads shapes only: the tensors have no elements. */
  tw_tensor hx = tw_describe(0, sx, 2, 2, 32), hy = tw_describe(0, sy, 2, 2, 32);
  tw_needs needs = {sizeof needs, 0, 0, 0};
  CHECK(!small_main_needs(model, &hx, &hy, shape_c, shape_d, &needs, &error));
  CHECK(shape_c[0] == 64 && shape_c[1] == 40 && shape_d[0] == 64);
  CHECK(needs.workspace_bytes > 64 * 40 * 4 && needs.flags == 0 && needs.state_bytes == 0);
  printf("workspace: %lld\n", (long long)needs.workspace_bytes);

  static float oc[64 * 40], od[64];
  tw_tensor tc = tw_describe(oc, sy, 2, 2, 32), td = tw_describe(od, sd, 1, 2, 32);
  char *space = tw_stdlib_alloc(0, needs.workspace_bytes + 64, 64);
  tw_call how = {sizeof how, space, needs.workspace_bytes};
  int64_t before = allocations;
  for (int k = 0; k < 1000; k++) {
    oc[0] = od[0] = -1;
    CHECK(!small_main_into(model, &x, &y, &tc, &td, &how, &error));
    CHECK(same(oc, pc, 64 * 40) && same(od, pd, 64));
  }
  CHECK(allocations == before);

  /* The bytes after the workspace are not written. */
  for (int64_t k = 0; k < 64; k++) space[needs.workspace_bytes + k] = 77;
  CHECK(!small_main_into(model, &x, &y, &tc, &td, &how, &error));
  for (int64_t k = 0; k < 64; k++) CHECK(space[needs.workspace_bytes + k] == 77);

  how.workspace_bytes--;
  report("short", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  how.workspace_bytes = 0;
  report("empty", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  how.workspace_bytes = needs.workspace_bytes;
  how.workspace = space + 8;
  report("misaligned", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  how.workspace = 0;
  report("null workspace", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  how.workspace_bytes = -1;
  report("negative", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  how.size = 0;
  report("no size", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  how.size = sizeof how - 8;
  report("small size", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  struct {
    tw_call known;
    int64_t later;
  } future = {{sizeof future, space, needs.workspace_bytes}, 0};
  CHECK(!small_main_into(model, &x, &y, &tc, &td, &future.known, &error));
  future.later = 1;
  report("unknown field", small_main_into(model, &x, &y, &tc, &td, &future.known, &error), &error);
  needs.size = 8;
  report("small needs", small_main_needs(model, &hx, &hy, 0, 0, &needs, &error), &error);
  report("null needs", small_main_needs(model, &hx, &hy, 0, 0, 0, &error), &error);
  needs.size = sizeof needs;

  how = (tw_call){sizeof how, space, needs.workspace_bytes};
  tw_tensor bad = tw_describe(px, sd, 1, 2, 32);
  report("output in input", small_main_into(model, &x, &y, &tc, &bad, &how, &error), &error);
  bad = tw_describe(oc + 100, sd, 1, 2, 32);
  report("output in output", small_main_into(model, &x, &y, &tc, &bad, &how, &error), &error);
  bad = tw_describe(space, sd, 1, 2, 32);
  report("output in workspace", small_main_into(model, &x, &y, &tc, &bad, &how, &error), &error);
  how.workspace = (char *)(((uintptr_t)py + 63) / 64 * 64);
  report("input in workspace", small_main_into(model, &x, &y, &tc, &td, &how, &error), &error);
  int64_t wrong[1] = {63}, matrix[2] = {64, 1}, steps[1] = {2};
  bad = tw_describe(od, wrong, 1, 2, 32);
  od[0] = oc[0] = -1;
  report("shape", small_main_into(model, &x, &y, &tc, &bad, 0, &error), &error);
  CHECK(oc[0] == -1);
  bad = tw_describe(od, matrix, 2, 2, 32);
  report("rank", small_main_into(model, &x, &y, &tc, &bad, 0, &error), &error);
  bad = tw_describe(od, sd, 1, 0, 32);
  report("dtype", small_main_into(model, &x, &y, &tc, &bad, 0, &error), &error);
  bad = td;
  bad.strides = steps;
  report("strides", small_main_into(model, &x, &y, &tc, &bad, 0, &error), &error);
  bad = td;
  bad.byte_offset = 2;
  report("alignment", small_main_into(model, &x, &y, &tc, &bad, 0, &error), &error);
  bad = td;
  bad.data = 0;
  report("null data", small_main_into(model, &x, &y, &tc, &bad, 0, &error), &error);
  report("null output", small_main_into(model, &x, &y, &tc, 0, 0, &error), &error);
  report("argument", small_main_into(model, &y, &y, &tc, &td, 0, &error), &error);

  /* A parameter that is updated in place is not a result. */
  float total[64];
  fill(total, 64, 3);
  tw_tensor ones = tw_describe(pd, sd, 1, 2, 32), sum = tw_describe(total, sd, 1, 2, 32);
  tw_needs in_place = {sizeof in_place, 0, 0, 0};
  CHECK(!small_accumulate_needs(model, &ones, &sum, &in_place, &error));
  CHECK(!small_accumulate_into(model, &ones, &sum, 0, &error));
  report("inout", small_accumulate_into(model, &sum, &sum, 0, &error), &error);

  small_trim(model, 0);
  CHECK(live == opened);
  small_close(model);
  CHECK(live == 0);

  /* A limit for two calls at once: 16 threads get their results, or an error at once. */
  runtime.arena_limit = 2 * needs.workspace_bytes;
  CHECK(!small_open(&runtime, weights, bytes, &model, &error));
  opened = live;
  worker workers[16] = {{0, 0, 0, 0}};
  pthread_t threads[16];
  int64_t good = 0, other = 0;
  for (int k = 0; k < 16; k++) {
    workers[k].model = model;
    CHECK(!pthread_create(&threads[k], 0, work, &workers[k]));
  }
  for (int k = 0; k < 16; k++) {
    pthread_join(threads[k], 0);
    good += workers[k].good;
    other += workers[k].other;
  }
  CHECK(good >= 400 && other == 0);
  CHECK(live - opened <= runtime.arena_limit);
  /* The memory of idle workspaces is freed for other functions. */
  static float wide[64 * 64];
  int64_t sw[2] = {64, 64};
  tw_tensor tw = tw_describe(wide, sw, 2, 2, 32), ts = tw_describe(wide, sw, 2, 2, 32);
  static float softmax[64 * 64];
  ts.data = softmax;
  CHECK(!small_scores_into(model, &tw, &ts, 0, &error));
  small_trim(model, 0);
  CHECK(live == opened);
  small_close(model);

  runtime.arena_limit = 100;
  CHECK(!small_open(&runtime, weights, bytes, &model, &error));
  report("limit", small_main_into(model, &x, &y, &tc, &td, 0, &error), &error);
  how = (tw_call){sizeof how, space, needs.workspace_bytes};
  CHECK(!small_main_into(model, &x, &y, &tc, &td, &how, &error));
  small_close(model);
  runtime.arena_limit = -1;
  report("negative limit", small_open(&runtime, weights, bytes, &model, &error), &error);
  /* A runtime of the first version of the structure has no limit. */
  runtime.size = offsetof(tw_runtime, arena_limit);
  CHECK(!small_open(&runtime, weights, bytes, &model, &error));
  CHECK(!small_main_into(model, &x, &y, &tc, &td, 0, &error));
  small_close(model);
  CHECK(live == 0);
  free(space);
  free(weights);
  printf("failures: %d\n", failures);
  return 0;
}
