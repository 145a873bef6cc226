/* The interface that every exported library shares, version 1. docs/abi.md describes it.
 *
 * Freestanding C11: nothing but <stdint.h> is needed, unless TILEWRIGHT_STDIO is defined, which
 * adds a runtime on malloc and free, and a reader of files. */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_ABI_VERSION 1

/* An address in a word of 8 bytes, whatever the size of a pointer. */
#define TW_WORD(type, name) \
  union {                   \
    type name;              \
    uint64_t name##_word;   \
  }

/* What a function answers; 0 is success. */
enum {
  TW_OK = 0,
  TW_ERROR_DTYPE = 1,
  TW_ERROR_RANK = 2,
  TW_ERROR_SHAPE = 3,
  TW_ERROR_STRIDES = 4,
  TW_ERROR_ALIGNMENT = 5,
  TW_ERROR_READ_ONLY = 6,
  TW_ERROR_DEVICE = 7,
  TW_ERROR_ALIAS = 8,
  TW_ERROR_FACT = 9,
  TW_ERROR_CHECK = 10,
  TW_ERROR_SIZE = 11,
  TW_ERROR_MEMORY = 12,
  TW_ERROR_KERNEL = 13,
  TW_ERROR_NULL = 14,
  TW_ERROR_VERSION = 15,
  TW_ERROR_WEIGHTS = 16,
  TW_ERROR_PROCESSOR = 17,
  TW_ERROR_INTERNAL = 18,
  TW_ERROR_THREADS = 19
};

/* Why a call failed. The caller owns it; every function clears it first. */
typedef struct tw_error {
  int32_t code;
  int32_t parameter; /* position of the argument at fault, or -1 */
  char message[504]; /* ends with a zero byte */
} tw_error;

/* DLPack's tensor in words of 8 bytes: on machines of 64 bits it is a DLTensor. */
typedef struct tw_tensor {
  TW_WORD(void *, data);
  int32_t device_type; /* 1: the processor's memory */
  int32_t device_id;
  int32_t ndim;
  uint8_t dtype_code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;     /* 1 */
  TW_WORD(int64_t *, shape);
  TW_WORD(int64_t *, strides); /* in elements; null: compact, row-major */
  uint64_t byte_offset;
} tw_tensor;

struct tw_result;
typedef void (*tw_deleter)(struct tw_result *);

/* A result: DLPack's versioned managed tensor. Give it to tw_release, or to who takes DLPack. */
typedef struct tw_result {
  uint32_t major, minor;
  TW_WORD(void *, context);
  TW_WORD(tw_deleter, deleter);
  uint64_t flags;
  tw_tensor tensor;
} tw_result;

typedef int32_t (*tw_body)(void *environment, int64_t begin, int64_t end, int64_t worker);

/* Where a library gets memory and threads. It has to live as long as every model opened with it,
 * and its functions may be called from any thread that calls the library. */
typedef struct tw_runtime {
  int64_t version; /* TW_ABI_VERSION */
  void *context;   /* handed to every function below */
  void *(*alloc)(void *context, int64_t bytes, int64_t alignment); /* null: there is no more */
  void (*free)(void *context, void *memory);
  /* Calls body for disjoint ranges that cover 0 .. stop, with workers numbered below threads, and
   * gives the first answer that is not 0. Null: everything runs on the caller's thread. */
  int32_t (*parallel)(void *context, tw_body body, int64_t stop, void *environment);
  int64_t threads;
} tw_runtime;

static inline void tw_release(tw_result *result) {
  if (result && result->deleter) result->deleter(result);
}

/* Describe compact elements; shape stays the caller's. */
static inline tw_tensor tw_describe(void *data, int64_t *shape, int32_t ndim, uint8_t code,
                                    uint8_t bits) {
  tw_tensor t;
  t.data_word = 0;
  t.shape_word = 0;
  t.strides_word = 0;
  t.data = data;
  t.device_type = 1;
  t.device_id = 0;
  t.ndim = ndim;
  t.dtype_code = code;
  t.dtype_bits = bits;
  t.dtype_lanes = 1;
  t.shape = shape;
  t.byte_offset = 0;
  return t;
}

#ifdef TILEWRIGHT_STDIO
#include <stdio.h>
#include <stdlib.h>

static inline void *tw_stdlib_alloc(void *context, int64_t bytes, int64_t alignment) {
  (void)context;
  return aligned_alloc((size_t)alignment, (size_t)((bytes + alignment - 1) / alignment * alignment));
}

static inline void tw_stdlib_free(void *context, void *memory) {
  (void)context;
  free(memory);
}

/* A runtime on the C library's memory and the caller's thread. */
static inline tw_runtime tw_stdlib_runtime(void) {
  tw_runtime r = {TW_ABI_VERSION, 0, tw_stdlib_alloc, tw_stdlib_free, 0, 1};
  return r;
}

/* Read a file into memory that free() takes back; null, and bytes 0, where that fails. */
static inline void *tw_read_file(const char *path, int64_t *bytes) {
  FILE *file = fopen(path, "rb");
  void *data = 0;
  long size = -1;
  *bytes = 0;
  if (!file) return 0;
  if (!fseek(file, 0, SEEK_END)) size = ftell(file);
  if (size >= 0 && !fseek(file, 0, SEEK_SET)) data = tw_stdlib_alloc(0, size + 1, 64);
  if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
    free(data);
    data = 0;
  }
  fclose(file);
  if (data) *bytes = size;
  return data;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
