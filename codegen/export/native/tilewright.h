/* The C interface that all exported libraries share, version 2. docs/abi.md describes it.
 *
 * Freestanding C11 that requires only <stdint.h>. TILEWRIGHT_STDIO adds a runtime that uses malloc
 * and free, and a file reader. TILEWRIGHT_PTHREADS adds both and a thread pool. TILEWRIGHT_MAP adds
 * functions that map files. Each part has its own include guard, so that a later include can add it. */
#if defined(TILEWRIGHT_PTHREADS) && !defined(TILEWRIGHT_STDIO)
#define TILEWRIGHT_STDIO
#endif

#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_ABI_VERSION 2

/* Flag of a runtime: open and update compare only the size and the header of the weights. */
#define TW_TRUST_WEIGHTS 1

/* An address in a word of 8 bytes, independent of the size of pointers. */
#define TW_WORD(type, name) \
  union {                   \
    type name;              \
    uint64_t name##_word;   \
  }

/* Error codes; 0 is success. */
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
  TW_ERROR_THREADS = 19,
  TW_ERROR_STATE = 20,
  TW_ERROR_CANCELED = 21,
  TW_ERROR_LIMIT = 22,
  TW_ERROR_WORKSPACE = 23,
  TW_ERROR_LEVEL = 24
};

/* An error. The caller owns it; every function clears it first. */
typedef struct tw_error {
  int32_t code;
  int32_t parameter; /* index of the offending parameter, or -1 */
  char message[504]; /* null-terminated */
} tw_error;

/* A tensor; on 64-bit machines it is DLPack's DLTensor. */
typedef struct tw_tensor {
  TW_WORD(void *, data);
  int32_t device_type; /* 1: host memory */
  int32_t device_id;
  int32_t ndim;
  uint8_t dtype_code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 10 and 12 float8 */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;     /* 1 */
  TW_WORD(int64_t *, shape);
  TW_WORD(int64_t *, strides); /* in elements; null: compact, row-major */
  uint64_t byte_offset;
} tw_tensor;

struct tw_result;
typedef void (*tw_deleter)(struct tw_result *);

/* A result: DLPack's DLManagedTensorVersioned. Release it with tw_release or a DLPack consumer. */
typedef struct tw_result {
  uint32_t major, minor;
  TW_WORD(void *, context);
  TW_WORD(tw_deleter, deleter);
  uint64_t flags;
  tw_tensor tensor;
} tw_result;

typedef int32_t (*tw_body)(void *environment, int64_t begin, int64_t end, int64_t worker);

/* The source of memory and threads of a library. open copies the structure. The data of context must
 * outlive every model, state, and result that was made with it. The functions are called on all
 * threads that call the library. Fields may be added at the end; a library accepts a larger structure
 * if the fields that it does not know are zero. */
typedef struct tw_runtime {
  int64_t size;    /* sizeof(tw_runtime) */
  int64_t version; /* TW_ABI_VERSION */
  void *context;   /* passed to every function below */
  /* Return memory at a multiple of alignment, or null if out of memory. */
  void *(*alloc)(void *context, int64_t bytes, int64_t alignment);
  void (*free)(void *context, void *memory);
  /* Calls body for disjoint ranges that cover 0 .. stop, with worker numbers below threads. Returns 0,
   * or, to cancel the call, another code without calling body for all ranges; the call then fails
   * with TW_ERROR_CANCELED. If body returns a code other than 0, the rest may be omitted. Null:
   * everything runs on the calling thread. */
  int32_t (*parallel)(void *context, tw_body body, int64_t stop, void *environment);
  int64_t threads; /* at least 1; if parallel is null, not used and at least 0 */
  uint64_t flags; /* TW_TRUST_WEIGHTS or 0 */
  /* The bytes of the workspaces of a model, in use or kept for later calls, or 0 for no limit. A call
   * that would exceed them fails at once with TW_ERROR_LIMIT, after kept memory was freed. */
  int64_t arena_limit;
  /* The 32 bytes of the sha256 of the tensors that open requires, or null: any that the library
   * accepts. Read by open only. */
  const unsigned char *expected_root;
  /* The level that open selects of a library with levels, or null or empty: the last one that the
   * processor can execute. Read by open only. Libraries without levels ignore it. */
  const char *level;
} tw_runtime;

/* How a call runs; a null pointer is the default. Fields may be added at the end, as in tw_runtime. */
typedef struct tw_call {
  int64_t size;            /* sizeof(tw_call) */
  void *workspace;         /* a multiple of 64, for this call alone; null: memory of the model */
  int64_t workspace_bytes; /* at least workspace_bytes of tw_needs */
} tw_call;

/* Flags of tw_needs: the call also allocates memory, whose size depends on the elements of arguments;
 * dimensions of results depend on them and are -1. */
#define TW_NEEDS_ALLOCATION 1
#define TW_NEEDS_ELEMENTS 2

/* The memory that a call needs. */
typedef struct tw_needs {
  int64_t size;            /* set by the caller: sizeof(tw_needs) */
  int64_t workspace_bytes; /* the smallest workspace */
  int64_t state_bytes;     /* the memory of the state that the function takes, or 0 */
  uint64_t flags;
} tw_needs;

static inline void tw_release(tw_result *result) {
  if (result && result->deleter) result->deleter(result);
}

/* Describe compact elements; the caller keeps ownership of shape. */
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

#ifdef __cplusplus
}
#endif
#endif

#if defined(TILEWRIGHT_STDIO) && !defined(TILEWRIGHT_STDIO_H)
#define TILEWRIGHT_STDIO_H
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Libraries pass memory between threads by atomic operations, which the thread sanitizer does not see
 * in a library: these calls order an allocation before the release of the memory. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TW_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define TW_THREAD_SANITIZER
#endif
#ifdef TW_THREAD_SANITIZER
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TW_TSAN(order, address) __tsan_##order(address)
#else
#define TW_TSAN(order, address) ((void)(address))
#endif

static inline void *tw_stdlib_alloc(void *context, int64_t bytes, int64_t alignment) {
  void *memory = aligned_alloc((size_t)alignment,
                               (size_t)((bytes + alignment - 1) / alignment * alignment));
  (void)context;
  TW_TSAN(release, memory);
  return memory;
}

static inline void tw_stdlib_free(void *context, void *memory) {
  (void)context;
  TW_TSAN(acquire, memory);
  free(memory);
}

/* Return a runtime that uses the C library's allocator and the calling thread. Its level is the
 * environment variable TILEWRIGHT_LEVEL. */
static inline tw_runtime tw_stdlib_runtime(void) {
  tw_runtime r = {sizeof r, TW_ABI_VERSION, 0, tw_stdlib_alloc, tw_stdlib_free, 0, 1, 0, 0, 0, 0};
  r.level = getenv("TILEWRIGHT_LEVEL");
  return r;
}

/* Read a file into memory to be freed with free(). Return null and set bytes to 0 on failure. */
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

#ifdef __cplusplus
}
#endif
#endif

#if defined(TILEWRIGHT_MAP) && !defined(TILEWRIGHT_MAP_H)
#define TILEWRIGHT_MAP_H
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(MAP_POPULATE)
enum { TW_POPULATE = MAP_POPULATE };
#elif defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__) || defined(__riscv))
enum { TW_POPULATE = 0x8000 }; /* hidden by -std=c11 */
#else
enum { TW_POPULATE = 0 };
#endif

#ifndef TW_MAP_FLAGS
/* The flags of mmap. Linux enters all pages in the page table at once, which a first call would
 * otherwise do at its accesses. Define it as MAP_PRIVATE if most of a file is not read. */
#define TW_MAP_FLAGS (MAP_PRIVATE | TW_POPULATE)
#endif

/* Map a file into memory, which processes that map it share. Return null and set bytes to 0 on failure.
 * The file may be replaced by rename, but must not be written or truncated while it is mapped. */
static inline const void *tw_map_file(const char *path, int64_t *bytes) {
  struct stat facts;
  void *data = MAP_FAILED;
  int file = open(path, O_RDONLY);
  *bytes = 0;
  if (file < 0) return 0;
  if (!fstat(file, &facts) && facts.st_size > 0)
    data = mmap(0, (size_t)facts.st_size, PROT_READ, TW_MAP_FLAGS, file, 0);
  close(file);
  if (data == MAP_FAILED) return 0;
  *bytes = (int64_t)facts.st_size;
  return data;
}

static inline void tw_unmap_file(const void *data, int64_t bytes) {
  if (data) munmap((void *)(uintptr_t)data, (size_t)bytes);
}

/* A mapped file, and its state when it was mapped. data is null if the file could not be mapped. */
typedef struct tw_mapping {
  const void *data;
  int64_t bytes;
  int32_t file; /* the open file */
  int64_t inode, seconds, nanoseconds;
} tw_mapping;

/* Nanoseconds of a modification time, or 0 where the C library does not declare them. */
#if defined(__APPLE__)
#define TW_MTIME_NANOSECONDS(facts) ((int64_t)(facts).st_mtimespec.tv_nsec)
#elif defined(st_mtime)
#define TW_MTIME_NANOSECONDS(facts) ((int64_t)(facts).st_mtim.tv_nsec)
#else
#define TW_MTIME_NANOSECONDS(facts) 0
#endif

/* Map a file as tw_map_file does, and keep it open for tw_mapping_check. */
static inline tw_mapping tw_mapping_open(const char *path) {
  tw_mapping m = {0, 0, -1, 0, 0, 0};
  struct stat facts;
  void *data = MAP_FAILED;
  m.file = open(path, O_RDONLY);
  if (m.file < 0) return m;
  if (!fstat(m.file, &facts) && facts.st_size > 0)
    data = mmap(0, (size_t)facts.st_size, PROT_READ, TW_MAP_FLAGS, m.file, 0);
  if (data == MAP_FAILED) {
    close(m.file);
    m.file = -1;
    return m;
  }
  m.data = data;
  m.bytes = (int64_t)facts.st_size;
  m.inode = (int64_t)facts.st_ino;
  m.seconds = (int64_t)facts.st_mtime;
  m.nanoseconds = TW_MTIME_NANOSECONDS(facts);
  return m;
}

/* Return TW_OK if the mapped file was not written or truncated since it was mapped, or else
 * TW_ERROR_WEIGHTS. A call that reads pages beyond the end of a truncated file ends the process. A
 * file that was replaced by rename remains valid. */
static inline int32_t tw_mapping_check(const tw_mapping *m, tw_error *error) {
  struct stat now;
  if (error) {
    error->code = TW_OK;
    error->parameter = -1;
    error->message[0] = 0;
  }
  if (m->data && !fstat(m->file, &now) && m->bytes == (int64_t)now.st_size &&
      m->seconds == (int64_t)now.st_mtime && m->nanoseconds == TW_MTIME_NANOSECONDS(now))
    return TW_OK;
  if (!error) return TW_ERROR_WEIGHTS;
  error->code = TW_ERROR_WEIGHTS;
  if (!m->data || fstat(m->file, &now))
    snprintf(error->message, sizeof error->message, "the weights are not mapped");
  else if (m->bytes != (int64_t)now.st_size)
    snprintf(error->message, sizeof error->message,
             "the mapped file (inode %lld) was written: size %lld is now %lld",
             (long long)m->inode, (long long)m->bytes, (long long)now.st_size);
  else
    snprintf(error->message, sizeof error->message,
             "the mapped file (inode %lld) was written: modification time %lld.%09lld is now "
             "%lld.%09lld",
             (long long)m->inode, (long long)m->seconds, (long long)m->nanoseconds,
             (long long)now.st_mtime, (long long)TW_MTIME_NANOSECONDS(now));
  return TW_ERROR_WEIGHTS;
}

static inline void tw_mapping_close(tw_mapping *m) {
  if (!m->data) return;
  tw_unmap_file(m->data, m->bytes);
  close(m->file);
  m->data = 0;
}

#ifdef __cplusplus
}
#endif
#endif

#if defined(TILEWRIGHT_PTHREADS) && !defined(TILEWRIGHT_PTHREADS_H)
#define TILEWRIGHT_PTHREADS_H
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A thread pool. A parallel loop is split into chunks, which the caller and the workers claim one
 * by one. The caller waits for claimed chunks only, never for a worker that the system has not
 * scheduled. One loop runs at a time: a caller that finds the pool busy runs its loop serially, so
 * several threads may call models with one pool. Idle workers sleep.
 *
 * Threads synchronize through one word, which is changed by compare-and-exchange:
 *   generation (31 bits) | free seats (8) | active workers (8) | unclaimed chunks (16)
 * The other fields of a loop are written while no worker is active, and read by active workers. */
#define TW_POOL_THREADS 256
#define TW_POOL_CHUNKS 4           /* per thread */
#define TW_POOL_WORKER_POLL 100000 /* nanoseconds that a worker polls for work before it sleeps */
#define TW_POOL_CALLER_POLL 20000  /* nanoseconds that a caller polls for the last chunks */
#define TW_POOL_GAP 20000          /* nanoseconds between two polls that indicate preemption */
#define TW_POOL_UNCLAIMED INT64_C(0xffff)
#define TW_POOL_ACTIVE (INT64_C(1) << 16)
#define TW_POOL_ANY_ACTIVE INT64_C(0xffffff)
#define TW_POOL_SEAT (INT64_C(1) << 24)
#define TW_POOL_SEATS (INT64_C(0xff) << 24)

typedef struct tw_pool {
  int64_t word;
  char padding[56]; /* the word, which all threads write, has its own cache line */
  int64_t busy;
  int64_t sleepers;
  int64_t closing;
  tw_body body;
  void *environment;
  int64_t stop, chunk, chunks, seats;
  int64_t code;
  int64_t core; /* the core of the caller: a worker on it sleeps instead of polling */
  int64_t threads, started;
  pid_t process;
  pthread_mutex_t sleep_mutex, done_mutex;
  pthread_cond_t sleep_condition, done_condition;
  pthread_t workers[TW_POOL_THREADS];
} tw_pool;

static inline int64_t tw_pool_load(int64_t *word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Write desired if the word equals *expected; otherwise store its value in *expected. */
static inline int tw_pool_swap(int64_t *word, int64_t *expected, int64_t desired) {
  return __atomic_compare_exchange_n(word, expected, desired, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

static inline int64_t tw_pool_time(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void tw_pool_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Return the core of the calling thread, or -1 if unknown. */
static inline int64_t tw_pool_core(void) {
#if defined(__linux__) && defined(_GNU_SOURCE)
  return sched_getcpu();
#else
  return -1;
#endif
}

static inline int tw_pool_open_work(int64_t word) {
  return (word & TW_POOL_UNCLAIMED) && (word & TW_POOL_SEATS);
}

/* Poll until there is work (if done: until all work is finished) and return 1. Return 0 after the
 * time limit, or if the thread was preempted. */
static inline int tw_pool_watch(tw_pool *p, int done, int64_t patience) {
  int64_t start = tw_pool_time(), last = start;
  while (last - start < patience) {
    for (int k = 0; k < 24; k++) {
      int64_t word = tw_pool_load(&p->word);
      if (done ? !(word & TW_POOL_ANY_ACTIVE) : tw_pool_open_work(word)) return 1;
      tw_pool_pause();
    }
    if (!done && tw_pool_load(&p->closing)) return 1;
    int64_t core = tw_pool_core();
    if (!done && core >= 0 && core == tw_pool_load(&p->core)) return 0;
    int64_t now = tw_pool_time();
    if (now < last || now - last > TW_POOL_GAP) return 0;
    last = now;
  }
  return 0;
}

/* Wake a sleeping worker. Best effort: it never waits for a lock, and is repeated per chunk. */
static inline void tw_pool_wake(tw_pool *p) {
  if (!tw_pool_open_work(tw_pool_load(&p->word)) || !tw_pool_load(&p->sleepers)) return;
  if (pthread_mutex_trylock(&p->sleep_mutex)) return;
  pthread_cond_signal(&p->sleep_condition);
  pthread_mutex_unlock(&p->sleep_mutex);
}

/* Claim the next chunk and return the number of unclaimed ones before, or leave the loop: 0. */
static inline int64_t tw_pool_next(tw_pool *p, int64_t worker, int32_t code) {
  int64_t word = tw_pool_load(&p->word), left, wanted;
  do {
    left = code ? 0 : word & TW_POOL_UNCLAIMED;
    wanted = left ? word - 1 : word - (word & TW_POOL_UNCLAIMED) - TW_POOL_ACTIVE;
  } while (!tw_pool_swap(&p->word, &word, wanted));
  if (!left && worker && !(wanted & TW_POOL_ANY_ACTIVE)) {
    pthread_mutex_lock(&p->done_mutex);
    pthread_cond_signal(&p->done_condition);
    pthread_mutex_unlock(&p->done_mutex);
  }
  return left;
}

static inline void tw_pool_chunks(tw_pool *p, int64_t worker, int64_t left) {
  while (left) {
    tw_pool_wake(p);
    int64_t begin = (p->chunks - left) * p->chunk, end = begin + p->chunk, none = 0;
    int32_t code = p->body(p->environment, begin, end < p->stop ? end : p->stop, worker);
    if (code) tw_pool_swap(&p->code, &none, code);
    left = tw_pool_next(p, worker, code);
  }
}

static inline void tw_pool_sleep(tw_pool *p) {
  pthread_mutex_lock(&p->sleep_mutex);
  __atomic_add_fetch(&p->sleepers, 1, __ATOMIC_SEQ_CST);
  if (!tw_pool_open_work(tw_pool_load(&p->word)) && !tw_pool_load(&p->closing))
    pthread_cond_wait(&p->sleep_condition, &p->sleep_mutex);
  __atomic_sub_fetch(&p->sleepers, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&p->sleep_mutex);
}

static inline void *tw_pool_worker(void *context) {
  tw_pool *p = (tw_pool *)context;
  while (!tw_pool_load(&p->closing)) {
    int64_t word = tw_pool_load(&p->word), joined = 0;
    while (!joined && tw_pool_open_work(word))
      joined = tw_pool_swap(&p->word, &word, word - TW_POOL_SEAT + TW_POOL_ACTIVE - 1);
    if (joined)
      tw_pool_chunks(p, p->seats - (word & TW_POOL_SEATS) / TW_POOL_SEAT + 1,
                     word & TW_POOL_UNCLAIMED);
    else if (!tw_pool_watch(p, 0, TW_POOL_WORKER_POLL))
      tw_pool_sleep(p);
  }
  return 0;
}

static inline void tw_pool_await(tw_pool *p) {
  if (tw_pool_watch(p, 1, TW_POOL_CALLER_POLL)) return;
  pthread_mutex_lock(&p->done_mutex);
  while (tw_pool_load(&p->word) & TW_POOL_ANY_ACTIVE)
    pthread_cond_wait(&p->done_condition, &p->done_mutex);
  pthread_mutex_unlock(&p->done_mutex);
}

/* The function parallel of a tw_runtime whose context is the pool. Serial in forked children. */
static inline int32_t tw_pool_parallel(void *context, tw_body body, int64_t stop,
                                       void *environment) {
  tw_pool *p = (tw_pool *)context;
  int64_t threads = p->started + 1 < stop ? p->started + 1 : stop, none = 0;
  if (threads < 2 || getpid() != p->process || !tw_pool_swap(&p->busy, &none, 1))
    return body(environment, 0, stop, 0);
  int64_t chunk = stop / (TW_POOL_CHUNKS * threads), word = tw_pool_load(&p->word);
  p->body = body;
  p->environment = environment;
  p->stop = stop;
  p->chunk = chunk ? chunk : 1;
  p->chunks = (stop + p->chunk - 1) / p->chunk;
  p->seats = threads - 1;
  __atomic_store_n(&p->code, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&p->core, tw_pool_core(), __ATOMIC_RELEASE);
  int64_t generation = ((word >> 32) + 1) & 0x7fffffff;
  tw_pool_swap(&p->word, &word, generation * (INT64_C(1) << 32) + p->seats * TW_POOL_SEAT +
                                    TW_POOL_ACTIVE + p->chunks - 1);
  tw_pool_chunks(p, 0, p->chunks);
  tw_pool_await(p);
  int32_t code = (int32_t)tw_pool_load(&p->code);
  __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
  return code;
}

/* Stop the workers. No call may be running, and models that use the pool must not be called. */
static inline void tw_pool_close(tw_pool *p) {
  if (!p) return;
  if (getpid() == p->process) {
    pthread_mutex_lock(&p->sleep_mutex);
    __atomic_store_n(&p->closing, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&p->sleep_condition);
    pthread_mutex_unlock(&p->sleep_mutex);
    for (int64_t k = 0; k < p->started; k++) pthread_join(p->workers[k], 0);
  }
  free(p);
}

/* Create a pool of threads, including the caller, at most TW_POOL_THREADS. Return null if out of
 * memory. The pool has fewer threads if the system cannot create all of them. Workers have the
 * signal mask of the calling thread. */
static inline tw_pool *tw_pool_open(int64_t threads) {
  tw_pool *p = (tw_pool *)calloc(1, sizeof *p);
  if (!p) return 0;
  p->threads = threads < TW_POOL_THREADS ? threads : TW_POOL_THREADS;
  p->process = getpid();
  pthread_mutex_init(&p->sleep_mutex, 0);
  pthread_mutex_init(&p->done_mutex, 0);
  pthread_cond_init(&p->sleep_condition, 0);
  pthread_cond_init(&p->done_condition, 0);
  while (p->started < p->threads - 1 &&
         !pthread_create(&p->workers[p->started], 0, tw_pool_worker, p))
    p->started++;
  return p;
}

/* Return a runtime that uses the C library's allocator and the threads of a pool. Its level is the
 * environment variable TILEWRIGHT_LEVEL. */
static inline tw_runtime tw_pool_runtime(tw_pool *p) {
  tw_runtime r = {sizeof r, TW_ABI_VERSION, p, tw_stdlib_alloc, tw_stdlib_free, tw_pool_parallel,
                  p->started + 1, 0, 0, 0, 0};
  r.level = getenv("TILEWRIGHT_LEVEL");
  return r;
}

#ifdef __cplusplus
}
#endif
#endif
