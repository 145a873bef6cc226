/* Prints the code and the message of every invalid call of the small model, and checks that all memory
 * is freed. */
#define TILEWRIGHT_STDIO
#include "small.h"

static int64_t given, taken, left = INT64_MAX;

static void *counted_alloc(void *context, int64_t bytes, int64_t alignment) {
  if (left-- <= 0) return 0;
  given++;
  return tw_stdlib_alloc(context, bytes, alignment);
}

static int shifted; /* the number of allocations before those that return misaligned addresses */

static void *shifted_alloc(void *context, int64_t bytes, int64_t alignment) {
  char *memory = counted_alloc(context, bytes + alignment, alignment);
  return memory && shifted-- <= 0 ? memory + 16 : memory;
}

static int32_t never_called(void *context, tw_body body, int64_t stop, void *environment) {
  (void)context, (void)body, (void)stop, (void)environment;
  return 1;
}

static void counted_free(void *context, void *memory) {
  taken += memory != 0;
  tw_stdlib_free(context, (void *)((uintptr_t)memory / 64 * 64));
}

static void show(const char *name, int32_t code, const tw_error *error) {
  printf("%s: %d %d %s\n", name, code, error->code == code ? error->parameter : -99,
         error->message);
}

int main(int argc, char **argv) {
  tw_runtime runtime = {sizeof runtime, TW_ABI_VERSION, 0, counted_alloc, counted_free,
                        0, 1, 0, 0, 0, 0};
  tw_runtime other = runtime;
  struct {
    tw_runtime known;
    int64_t field;
  } later = {runtime, 0};
  small_model *model, *second, *shifting;
  tw_error error;
  tw_result *c, *d;
  int64_t bytes, shape[2] = {3, 24}, results[2] = {3, 40}, wrong[2] = {3, 23};
  static float x[3 * 24], y[3 * 40];
  if (argc < 2) return 2;
  char *weights = tw_read_file(argv[1], &bytes);

  show("no runtime", small_open(0, weights, bytes, &model, &error), &error);
  show("no output", small_open(&runtime, weights, bytes, 0, &error), &error);
  other.version = 1;
  show("version", small_open(&other, weights, bytes, &model, &error), &error);
  other = runtime;
  other.size = 1;
  show("size", small_open(&other, weights, bytes, &model, &error), &error);
  later.known.size = sizeof later;
  later.field = 5;
  show("later field", small_open(&later.known, weights, bytes, &model, &error), &error);
  later.field = 0;
  show("later size", small_open(&later.known, weights, bytes, &model, &error), &error);
  small_close(model);
  other = runtime;
  other.threads = -3;
  show("threads -3", small_open(&other, weights, bytes, &model, &error), &error);
  other.parallel = never_called;
  other.threads = 0;
  show("threads 0", small_open(&other, weights, bytes, &model, &error), &error);
  other.threads = 65537;
  show("threads 65537", small_open(&other, weights, bytes, &model, &error), &error);
  other = runtime;
  other.alloc = shifted_alloc;
  for (int k = 0, code = 1; code; k++) {
    shifted = k;
    given = taken = 0;
    code = small_open(&other, weights, bytes, &model, &error);
    if (k < 2) show(k ? "second address" : "first address", code, &error);
    if (code && (code != TW_ERROR_ALIGNMENT || given != taken)) printf("address %d: %d\n", k, code);
  }
  small_close(model);
  given = taken = 0;
  other = runtime;
  other.alloc = 0;
  show("no alloc", small_open(&other, weights, bytes, &model, &error), &error);
  show("no weights", small_open(&runtime, 0, bytes, &model, &error), &error);
  show("truncated", small_open(&runtime, weights, bytes - 1, &model, &error), &error);
  show("empty", small_open(&runtime, weights, 0, &model, &error), &error);
  show("negative", small_open(&runtime, weights, -5, &model, &error), &error);
  show("unaligned", small_open(&runtime, weights + 4, bytes, &model, &error), &error);
  for (int64_t k = 0; k < 128; k += 7) {
    weights[k] ^= 0x20;
    int32_t code = small_open(&runtime, weights, bytes, &model, &error);
    if (code != TW_ERROR_WEIGHTS || model) printf("header byte %d: %d\n", (int)k, code);
    weights[k] ^= 0x20;
  }
  other = runtime;
  other.flags = 6;
  show("flags", small_open(&other, weights, bytes, &model, &error), &error);
  weights[bytes - 1] ^= 1;
  show("altered", small_open(&runtime, weights, bytes, &model, &error), &error);
  other.flags = TW_TRUST_WEIGHTS;
  show("altered but trusted", small_open(&other, weights, bytes, &model, &error), &error);
  small_close(model);
  weights[bytes - 1] ^= 1;
  for (int64_t room = 0; room < 1000; room++) {
    given = taken = 0;
    left = room;
    if (!small_open(&runtime, weights, bytes, &model, &error)) break;
    if (error.code != TW_ERROR_MEMORY || given != taken || model)
      printf("room %d: %d, %d given, %d taken\n", (int)room, error.code, (int)given, (int)taken);
  }
  left = INT64_MAX;
  show("opened", small_open(&runtime, weights, bytes, &second, &error), &error);

  tw_tensor tx = tw_describe(x, shape, 2, 2, 32), ty = tw_describe(y, results, 2, 2, 32), bad;
  small_trim(model, 0); /* workspaces of the preparation */
  int64_t opened = given - taken;
  if (small_main(model, &tx, &ty, &c, &d, &error)) return 3;
  tw_release(c);
  tw_release(d);
  printf("kept for later calls: %d\n", given - taken > opened);
  small_trim(model, 0);
  printf("after trim: %d\n", (int)(given - taken - opened));
  small_trim(0, 0);
  show("no model", small_main(0, &tx, &ty, &c, &d, &error), &error);
  show("no tensor", small_main(model, &tx, 0, &c, &d, &error), &error);
  show("no result", small_main(model, &tx, &ty, &c, 0, &error), &error);
  bad = tx, bad.data = 0;
  show("no data", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.shape = 0;
  show("no shape", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.ndim = -1;
  show("rank -1", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.ndim = 1;
  show("rank", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.dtype_bits = 64;
  show("dtype", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.dtype_lanes = 4;
  show("lanes", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.shape = wrong;
  show("shape", small_main(model, &bad, &ty, &c, &d, &error), &error);
  int64_t huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, minus[2] = {-3, 24};
  bad = tx, bad.shape = huge;
  show("huge", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.shape = minus;
  show("negative dimension", small_main(model, &bad, &ty, &c, &d, &error), &error);
  int64_t strides[2] = {48, 2};
  bad = tx, bad.strides = strides;
  show("strides", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.byte_offset = 2;
  show("alignment", small_main(model, &bad, &ty, &c, &d, &error), &error);
  bad = tx, bad.device_type = 2;
  show("device", small_main(model, &bad, &ty, &c, &d, &error), &error);
  int64_t long_x[2] = {65, 24}, long_y[2] = {65, 40};
  static float far_x[65 * 24], far_y[65 * 40];
  tw_tensor fx = tw_describe(far_x, long_x, 2, 2, 32), fy = tw_describe(far_y, long_y, 2, 2, 32);
  show("fact", small_main(model, &fx, &fy, &c, &d, &error), &error);
  int64_t line[1] = {24};
  tw_tensor t = tw_describe(x, line, 1, 2, 32);
  show("alias", small_accumulate(model, &t, &t, &error), &error);
  left = 0;
  show("no memory", small_main(model, &tx, &ty, &c, &d, &error), &error);
  left = 1;
  show("less memory", small_main(model, &tx, &ty, &c, &d, &error), &error);
  left = INT64_MAX;
  other = runtime;
  other.alloc = shifted_alloc;
  shifted = INT32_MAX;
  small_open(&other, weights, bytes, &shifting, &error);
  shifted = 0;
  show("address of a call", small_main(shifting, &tx, &ty, &c, &d, &error), &error);
  shifted = INT32_MAX;
  printf("live models: %d\n", (int)small_live_models());
  small_close(shifting);
  show("well", small_main(model, &tx, &ty, &c, &d, &error), &error);
  printf("live results: %d of %d models\n", (int)small_live_results(model), (int)small_live_models());
  tw_release(c);
  printf("after a release: %d\n", (int)small_live_results(model));
  tw_result *e, *f;
  if (small_main(model, &bad, &ty, &e, &f, 0) != TW_ERROR_DEVICE) printf("no error record\n");
  small_close(model);
  printf("after close: %d\n", (int)small_live_models());
  tw_release(d); /* after its model */
  printf("all released: %d\n", (int)small_live_models());
  small_close(second);
  small_close(0);
  printf("at the end: %d\n", (int)(small_live_models() + small_live_results(0)));
  printf("balance: %d\n", (int)(given - taken));
  free(weights);
  return 0;
}
