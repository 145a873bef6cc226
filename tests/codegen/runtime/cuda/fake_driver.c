/* A fake libcuda.so.1, which implements the interface of the CUDA driver on the host.
 *
 * Memory of the fake GPU is in protected pages, which only copies and kernels make accessible. So
 * host code that reads a device address crashes, as on a machine with a GPU. Kernels are executed
 * by a callback of the test. Calls are written to a log.
 *
 * The default stream runs at once. Other streams run as late as possible: their operations are
 * queued until another stream or the host waits for them. So a missing wait changes results.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef int (*Launched)(const char *name, const unsigned *dims, void **params);

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100,
       INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY = 209,
       NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

struct block { char *start; size_t size, room; struct block *next; };
struct module { char *names; };
struct function { char name[256]; int max_shared; struct function *next; };

static int devices = 1, capability = 80, initialized, unloadable, faulty;
static size_t limit = 1u << 30, used;
static struct block *blocks;
static struct function *functions;
static Launched launched;
static char calls[1 << 20];
static size_t written;
static int context_object, retained;
static __thread void *stack[64];
static __thread int depth;

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&writing);
    if (written + 512 < sizeof calls)
        written += vsnprintf(calls + written, 512, format, args);
    pthread_mutex_unlock(&writing);
    va_end(args);
}

static void *current(void) { return depth ? stack[depth - 1] : NULL; }

/* The interface for tests. */

void fake_reset(void) {
    devices = 1, capability = 80, unloadable = 0, faulty = 0, limit = 1u << 30, launched = NULL;
    written = 0, calls[0] = 0;
}
void fake_devices(int count) { devices = count; }
void fake_capability(int number) { capability = number; }
void fake_limit(size_t bytes) { limit = bytes; }
void fake_unloadable(int code) { unloadable = code; }
/* Let copies from the GPU fail with a code. */
void fake_fault(int code) { faulty = code; }
void fake_on_launch(Launched callback) { launched = callback; }
const char *fake_calls(void) { return calls; }
size_t fake_used(void) { return used; }

/* Devices and contexts. */

CUresult cuInit(unsigned flags) { initialized = 1; return devices ? 0 : NO_DEVICE; }
CUresult cuDriverGetVersion(int *version) { *version = 13050; return 0; }
CUresult cuDeviceGetCount(int *count) { *count = devices; return initialized ? 0 : NOT_INITIALIZED; }
CUresult cuDeviceGet(int *device, int ordinal) {
    if (ordinal < 0 || ordinal >= devices) return INVALID_DEVICE;
    *device = ordinal;
    return 0;
}
CUresult cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, size, "Fake GPU");
    return 0;
}
CUresult cuDeviceComputeCapability(int *major, int *minor, int device) {
    *major = capability / 10, *minor = capability % 10;
    return 0;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 1;
    return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = limit; return 0; }
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &context_object;
    note("retain\n"), retained++;
    return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(int device) { retained--; return 0; }
CUresult cuCtxPushCurrent_v2(void *context) {
    if (depth == 64) return INVALID_VALUE;
    stack[depth++] = context;
    return 0;
}
CUresult cuCtxPopCurrent_v2(void **context) {
    if (!depth) return INVALID_CONTEXT;
    void *top = stack[--depth];
    if (context) *context = top;
    return 0;
}
CUresult cuCtxSetCurrent(void *context) {
    if (!depth) depth = 1;
    stack[depth - 1] = context;
    return 0;
}
CUresult cuCtxGetCurrent(void **context) { *context = current(); return 0; }
CUresult cuCtxGetDevice(int *device) { *device = 0; return current() ? 0 : INVALID_CONTEXT; }
CUresult cuCtxGetApiVersion(void *context, unsigned *version) { *version = 13050; return 0; }
CUresult cuCtxSynchronize(void) { return 0; }
CUresult cuCtxDetach(void *context) { return 0; }

/* Memory. */

/* Pages are accessible while a copy or a kernel runs. The lock is not held during that time,
 * because the callback of a kernel may wait for another thread that allocates. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int opened;

static int access_now(void) { return opened ? PROT_READ | PROT_WRITE : PROT_NONE; }

static void shut(int open) {
    pthread_mutex_lock(&lock);
    opened += open ? 1 : -1;
    if (opened == (open ? 1 : 0))
        for (struct block *b = blocks; b; b = b->next)
            mprotect(b->start, b->room, access_now());
    pthread_mutex_unlock(&lock);
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    if (!current()) return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    int fits = used + size <= limit;
    if (fits) {
        struct block *b = malloc(sizeof *b);
        b->size = size, b->room = (size + 4095) / 4096 * 4096, b->next = blocks;
        b->start = mmap(NULL, b->room, access_now(), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        blocks = b, used += size, *address = (CUdeviceptr)b->start;
    }
    pthread_mutex_unlock(&lock);
    note(fits ? "alloc %zu\n" : "alloc %zu rejected\n", size);
    return fits ? 0 : OUT_OF_MEMORY;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
    struct block *b = NULL;
    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at && !b; )
        if ((*at)->start == (char *)address)
            b = *at, *at = b->next, used -= b->size;
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&lock);
    if (!b) return INVALID_VALUE;
    note("free %zu\n", b->size);
    munmap(b->start, b->room), free(b);
    return 0;
}
CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    *available = limit - used, *total = limit;
    return 0;
}

/* Return 1 inside GPU memory, 0 outside of it, -1 across the end of a block. */
static int locate(char *address, size_t size) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (struct block *b = blocks; b && !found; b = b->next)
        if (address >= b->start && address < b->start + b->room)
            found = address + size <= b->start + b->size ? 1 : -1;
    pthread_mutex_unlock(&lock);
    return found;
}
static CUresult copy_now(CUdeviceptr target, CUdeviceptr source, size_t size) {
    int to = locate((char *)target, size), from = locate((char *)source, size);
    if (to < 0 || from < 0) return INVALID_VALUE;
    if (faulty && from) return faulty;
    note("copy %s to %s %zu\n", from ? "device" : "host", to ? "device" : "host", size);
    shut(1);
    memmove((void *)target, (void *)source, size);
    shut(0);
    return 0;
}
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t size) {
    return current() ? copy_now(target, source, size) : INVALID_CONTEXT;
}

/* Streams and events. */

struct function;
static CUresult run_kernel(struct function *kernel, unsigned *dims, void **params);

/* A queued operation: a copy, a launch, or the wait for an operation of another stream. */
struct operation {
    CUdeviceptr target, source;
    size_t size;
    struct function *kernel;
    unsigned dims[7];
    void **params;
    struct stream *other;
    int until;
};
struct stream { int number, count, done; struct operation queue[1024]; };
struct event { struct stream *stream; int until; };
static int streams;

static CUresult drain(struct stream *stream, int until) {
    CUresult code = 0;
    while (stream && stream->done < until && !code) {
        struct operation *o = &stream->queue[stream->done++];
        code = o->other    ? drain(o->other, o->until)
               : o->kernel ? run_kernel(o->kernel, o->dims, o->params)
                           : copy_now(o->target, o->source, o->size);
    }
    return code;
}
static struct operation *queued(struct stream *stream) {
    struct operation *o = &stream->queue[stream->count++];
    memset(o, 0, sizeof *o);
    return o;
}
CUresult cuStreamCreate(void **stream, unsigned flags) {
    struct stream *made = calloc(1, sizeof *made);
    if (!current()) return INVALID_CONTEXT;
    if (flags != 1) return INVALID_VALUE; /* one that does not wait for the default stream */
    made->number = ++streams, *stream = made;
    return 0;
}
CUresult cuEventCreate(void **event, unsigned flags) {
    *event = calloc(1, sizeof(struct event));
    return current() ? 0 : INVALID_CONTEXT;
}
CUresult cuEventRecord(void *event, void *stream) {
    struct event *e = event;
    e->stream = stream, e->until = stream ? e->stream->count : 0;
    note("record stream %d\n", stream ? e->stream->number : 0);
    return 0;
}
CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    struct stream *s = stream;
    struct event *e = event;
    note("stream %d waits for %d\n", s ? s->number : 0, e->stream ? e->stream->number : 0);
    if (!e->stream) return 0; /* the default stream is never behind */
    if (!s) return drain(e->stream, e->until);
    struct operation *o = queued(s);
    o->other = e->stream, o->until = e->until;
    return 0;
}
CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size, void *stream) {
    if (!current()) return INVALID_CONTEXT;
    if (!stream) return copy_now(target, source, size);
    struct operation *o = queued(stream);
    o->target = target, o->source = source, o->size = size;
    return 0;
}

/* Kernels. */

CUresult cuModuleLoadData(void **module, const void *image) {
    const char *text = image;
    if (!current()) return INVALID_CONTEXT;
    int machine_code = !memcmp(text, "\x7f" "ELF", 4);
    if (unloadable && (machine_code || unloadable != 218)) return unloadable;
    if (!machine_code && !strstr(text, ".version")) return INVALID_IMAGE;
    note("load %s\n", machine_code ? "cubin" : "ptx");
    struct module *result = malloc(sizeof *result);
    result->names = machine_code ? NULL : strdup(text);
    *module = result;
    return 0;
}
CUresult cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *o, void **v) {
    return cuModuleLoadData(module, image);
}
CUresult cuModuleUnload(void *module) { return 0; }
CUresult cuModuleGetFunction(void **function, void *module, const char *name) {
    struct module *from = module;
    if (from->names && !strstr(from->names, name)) return NOT_FOUND;
    struct function *result = calloc(1, sizeof *result);
    snprintf(result->name, sizeof result->name, "%s", name);
    result->max_shared = 48 * 1024, result->next = functions, functions = result;
    *function = result;
    return 0;
}
CUresult cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute != 8) return INVALID_VALUE;
    ((struct function *)function)->max_shared = value;
    note("shared of %s up to %d\n", ((struct function *)function)->name, value);
    return 0;
}
CUresult cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                        void **extra) {
    struct function *kernel = NULL;
    for (struct function *f = functions; f; f = f->next)
        if (f == function) kernel = f;
    if (!current()) return INVALID_CONTEXT;
    if (!kernel) return INVALID_VALUE;
    unsigned dims[7] = {gx, gy, gz, bx, by, bz, shared};
    for (int k = 0; k < 6; k++)
        if (!dims[k]) return INVALID_VALUE;
    if (gy > 65535 || gz > 65535 || (int)shared > kernel->max_shared) return INVALID_VALUE;
    if (!stream) return run_kernel(kernel, dims, params);
    /* Generated code stores the values of the arguments after their addresses. */
    struct stream *s = stream;
    struct operation *o = queued(s);
    int count = (int)((void **)params[0] - params);
    o->kernel = kernel, o->params = malloc(16 * count);
    memcpy(o->dims, dims, sizeof dims);
    memcpy(o->params + count, params + count, 8 * count);
    for (int k = 0; k < count; k++) o->params[k] = o->params + count + k;
    return 0;
}
static CUresult run_kernel(struct function *kernel, unsigned *dims, void **params) {
    note("launch %s (%u, %u, %u) x (%u, %u, %u) shared %u\n", kernel->name, dims[0], dims[1],
         dims[2], dims[3], dims[4], dims[5], dims[6]);
    if (!launched) return 0;
    shut(1);
    int code = launched(kernel->name, dims, params);
    shut(0);
    return code;
}
CUresult cuStreamSynchronize(void *stream) {
    note("wait\n");
    return stream ? drain(stream, ((struct stream *)stream)->count) : 0;
}

/* Errors. */

CUresult cuGetErrorString(CUresult code, const char **text) {
    switch (code) {
    case INVALID_VALUE: *text = "invalid argument"; return 0;
    case OUT_OF_MEMORY: *text = "out of memory"; return 0;
    case NO_DEVICE: *text = "no CUDA-capable device is detected"; return 0;
    case INVALID_IMAGE: *text = "device kernel image is invalid"; return 0;
    case INVALID_CONTEXT: *text = "invalid device context"; return 0;
    case NO_BINARY: *text = "no kernel image is available for execution on the device"; return 0;
    case 218: *text = "a PTX JIT compilation failed"; return 0;
    case ILLEGAL_ADDRESS: *text = "an illegal memory access was encountered"; return 0;
    default: *text = NULL; return INVALID_VALUE;
    }
}
CUresult cuGetErrorName(CUresult code, const char **text) { return cuGetErrorString(code, text); }
