/* Calls from Python without conversions: NAME.py calls these functions through ctypes.PyDLL, which keeps
 * the GIL. The loader stores the addresses of functions of CPython's stable ABI in a table; the library
 * itself is not linked to Python. Arrays are read by __array_struct__, which NumPy arrays provide,
 * read-only ones included. */

#include <stddef.h>

typedef void tw_object;

/* The address of functions, in the order of PYTHON_FUNCTIONS of the loader. */
typedef struct {
  tw_object *(*get_attribute)(tw_object *object, tw_object *name);
  void *(*get_pointer)(tw_object *capsule, const char *name);
  tw_object *(*new_capsule)(void *pointer, const char *name, void (*destroy)(tw_object *));
  tw_object *(*get_item)(tw_object *tuple, intptr_t position);
  intptr_t (*get_size)(tw_object *tuple);
  tw_object *(*new_tuple)(intptr_t size);
  int (*set_item)(tw_object *tuple, intptr_t position, tw_object *value); /* takes the reference */
  void (*retain)(tw_object *);
  void (*drop)(tw_object *);
  void *(*leave)(void);
  void (*enter)(void *thread);
  void (*clear_error)(void);
  tw_object *(*raised)(void);
  long long (*as_integer)(tw_object *);
  tw_object *(*call)(tw_object *callable, const char *format, ...);
  void *(*allocate)(size_t bytes);
  void (*deallocate)(void *memory);
  tw_object *name;  /* "__array_struct__" */
  tw_object *slow;  /* the answer to arguments that Python code must convert or refuse */
  tw_object *raise; /* called with a code and a message */
} tw_python;

/* NumPy's PyArrayInterface. */
typedef struct {
  int two, rank;
  char kind;
  int bytes, flags;
  intptr_t *shape, *strides;
  void *data;
  tw_object *description;
} tw_array;

#define ARRAY_ROWS 0x1
#define ARRAY_NATIVE 0x200
#define ARRAY_WRITABLE 0x400
#define ARRAY_RANK 8

/* One function of an open model. */
typedef struct {
  const tw_python *python;
  TW_MODEL *model;
  int64_t number;
  tw_object *owner; /* keeps the memory functions of the runtime, which results use */
} tw_entry;

/* Memory and threads of a loader: the context of its tw_runtime. */
typedef struct {
  void *(*allocate)(size_t alignment, size_t bytes);
  void (*deallocate)(void *memory);
  void *pool;
} tw_memory;

/* A result that Python owns: the interface of an array, whose strides follow. */
typedef struct {
  tw_array array;
  const tw_python *python;
  tw_result *result;
  tw_object *owner;
  intptr_t strides[];
} tw_owned;

static void *host_allocate(void *context, int64_t bytes, int64_t alignment) {
  tw_memory *memory = context;
  uint64_t unit = (uint64_t)alignment;
  return memory->allocate((size_t)unit, (size_t)(((uint64_t)bytes + unit - 1) / unit * unit));
}

static void host_free(void *context, void *block) { ((tw_memory *)context)->deallocate(block); }

static int32_t host_parallel(void *context, tw_body body, int64_t stop, void *environment) {
  return tw_pool_parallel(((tw_memory *)context)->pool, body, stop, environment);
}

/* Fill a runtime whose context is a tw_memory. */
TW_EXPORT void TW_NAMED(TW_NAME, python_runtime)(tw_runtime *runtime) {
  runtime->alloc = host_allocate;
  runtime->free = host_free;
  runtime->parallel = runtime->threads > 1 ? host_parallel : 0;
}

/* A tensor of an argument: the capsule that owns the description, and the tensor in the ABI. */
typedef struct {
  tw_object *capsule;
  tw_tensor tensor;
  int64_t strides[ARRAY_RANK];
  int writable;
} tw_given;

static int dtype_of_kind(char kind) {
  switch (kind) {
    case 'i':
      return 0;
    case 'u':
      return 1;
    case 'f':
      return 2;
    case 'c':
      return 5;
    case 'b':
      return 6;
    default:
      return -1;
  }
}

/* Describe an array; return 0 if it must be converted by Python code. */
static int describe(const tw_python *py, tw_object *object, tw_given *given) {
  given->capsule = py->get_attribute(object, py->name);
  tw_array *array = given->capsule ? py->get_pointer(given->capsule, 0) : 0;
  if (!array) {
    py->clear_error();
    return 0;
  }
  int code = dtype_of_kind(array->kind);
  if (array->two != 2 || code < 0 || array->bytes <= 0 || array->bytes > 16 ||
      !(array->flags & ARRAY_NATIVE))
    return 0;
  given->tensor = tw_describe(array->data, (int64_t *)array->shape, array->rank, (uint8_t)code,
                              (uint8_t)(8 * array->bytes));
  given->writable = (array->flags & ARRAY_WRITABLE) != 0;
  if (array->flags & ARRAY_ROWS) return 1;
  if (array->rank > ARRAY_RANK) return 0;
  for (int k = 0; k < array->rank; k++) {
    if (array->strides[k] % array->bytes) return 0;
    given->strides[k] = array->strides[k] / array->bytes;
  }
  given->tensor.strides = given->strides;
  return 1;
}

static void delete_owned(tw_object *capsule);

/* Return a capsule with the interface of an array, which owns a result. */
static tw_object *own(const tw_entry *entry, const tw_output *output, tw_result *result) {
  static const char kinds[] = {'i', 'u', 'f', 0, 0, 'c', 'b'};
  const tw_python *py = entry->python;
  int32_t rank = output->rank, bytes = output->bits / 8;
  tw_owned *made = py->allocate(sizeof *made + (size_t)rank * sizeof(intptr_t));
  if (!made) return 0;
  made->array = (tw_array){2, rank, kinds[output->code], bytes,
                           ARRAY_ROWS | 0x100 | ARRAY_NATIVE | ARRAY_WRITABLE,
                           (intptr_t *)result->tensor.shape, made->strides, result->tensor.data, 0};
  for (int k = 0; k < rank; k++) made->strides[k] = (intptr_t)(result->tensor.strides[k] * bytes);
  made->python = py;
  made->result = result;
  made->owner = entry->owner;
  tw_object *capsule = py->new_capsule(&made->array, 0, delete_owned);
  if (!capsule) {
    py->deallocate(made);
    return 0;
  }
  py->retain(entry->owner);
  return capsule;
}

/* The functions of Python are the same for all models of a process. */
static const tw_python *capsules;

static void delete_owned(tw_object *capsule) {
  const tw_python *py = capsules;
  tw_owned *made = py->get_pointer(capsule, 0);
  made->result->deleter(made->result);
  py->drop(made->owner);
  py->deallocate(made);
}

/* Return the results: a capsule, or a tuple of capsules if there are several. */
static tw_object *own_results(const tw_entry *entry, const tw_function *f, uint64_t *results) {
  const tw_python *py = entry->python;
  tw_object *all = f->output_count == 1 ? 0 : py->new_tuple(f->output_count), *one = 0;
  int failed = f->output_count != 1 && !all;
  for (int32_t k = 0; k < f->output_count; k++) {
    tw_result *result = ADDRESS(results[f->outputs[k].position]);
    one = failed ? 0 : own(entry, &f->outputs[k], result);
    if (!one) {
      failed = 1;
      result->deleter(result);
    } else if (all) {
      py->set_item(all, k, one);
    }
  }
  if (!failed) return all ? all : one;
  if (all) py->drop(all);
  return py->call(py->raise, "is", TW_ERROR_MEMORY, "cannot allocate an array");
}

static tw_object *call_arrays(const tw_entry *entry, tw_object *arguments, tw_object *outputs,
                              tw_given *given, uint64_t *call) {
  const tw_python *py = entry->python;
  const tw_function *f = &functions[entry->number];
  const tw_tensor *out[MOST_RESULTS + 1];
  int32_t position = 0, count = f->param_count;
  tw_error error;
  begin_call(entry->model, f, call);
  for (int32_t k = 0; k < f->param_count; k++) {
    tw_object *object = py->get_item(arguments, position++);
    uint64_t *operand = call + CALL_OPERANDS / 8 + 2 * k;
    if (f->params[k].integer) {
      int64_t value = py->as_integer(object);
      if (value == -1 && py->raised()) return py->clear_error(), py->retain(py->slow), py->slow;
      operand[0] = FORM_INTEGER;
      operand[1] = (uint64_t)value;
      continue;
    }
    if (!describe(py, object, &given[k])) return py->retain(py->slow), py->slow;
    operand[0] = FORM_DLPACK | (given[k].writable ? 0 : 256);
    operand[1] = WORD(&given[k].tensor);
  }
  for (int32_t k = 0; outputs && k < f->output_count; k++) {
    if (!describe(py, py->get_item(outputs, k), &given[count + k]) || !given[count + k].writable)
      return py->retain(py->slow), py->slow;
    out[k] = &given[count + k].tensor;
  }
  void *thread = py->leave();
  int32_t code = TW_OK;
  for (int32_t k = 0; !code && k < f->param_count; k++)
    if (!f->params[k].integer) code = check_tensor(f, k, &given[k].tensor, &error);
  if (!code)
    code = outputs ? call_into(entry->model, (int32_t)entry->number, call, out, 0, 0, &error)
                   : call_function(entry->model, (int32_t)entry->number, call, &error);
  py->enter(thread);
  if (code) return py->call(py->raise, "is", (int)code, error.message);
  if (outputs) return py->retain(outputs), outputs;
  return own_results(entry, f, results_of(f, call));
}

/* Return the number of a function by its name. */
TW_EXPORT int32_t TW_NAMED(TW_NAME, python_number)(const char *name) {
  for (int32_t k = 0; k < FUNCTIONS; k++)
    if (functions[k].prepares < 0 && equal_text(functions[k].name, name)) return k;
  return -1;
}

/* Call a function with a tuple of arguments, and a tuple of outputs or null. Return the outputs, new
 * results as capsules, py->slow, or null with an exception set. */
TW_EXPORT tw_object *TW_NAMED(TW_NAME, python_call)(const tw_entry *entry, tw_object *arguments,
                                                    tw_object *outputs) {
  const tw_python *py = entry->python;
  const tw_function *f = &functions[entry->number];
  tw_given given[MOST_PARAMS + MOST_RESULTS];
  uint64_t call[CALL_OPERANDS / 8 + 2 * MOST_PARAMS + MOST_RESULTS + 1];
  int32_t last = f->param_count + f->output_count;
  if (outputs == py->slow) outputs = 0;
  if (!entry->model || py->get_size(arguments) != f->param_count ||
      (outputs && py->get_size(outputs) != f->output_count))
    return py->retain(py->slow), py->slow;
  for (int32_t k = 0; k < last; k++) given[k].capsule = 0;
  capsules = py;
  tw_object *answer = call_arrays(entry, arguments, outputs, given, call);
  for (int32_t k = 0; k < last; k++)
    if (given[k].capsule) py->drop(given[k].capsule);
  return answer;
}
