/* The library's capabilities, as calls and as data; and every function by name.
 *
 * Versions: a program states the oldest ABI it needs and is refused, before anything is touched,
 * when the library is older. Operators: enumerable, describable as JSON, callable with named
 * values, explainable (which kernel would run, and why not the others). Functions: any exported
 * function can be called by name with checked arguments. By-name calls are for set-up, bindings and
 * tools; the typed functions are the fast path.
 */
#ifndef VELO_INTROSPECT_H
#define VELO_INTROSPECT_H

#include "velo/status.h"
#include "velo/types.h"

VELO_BEGIN_C

struct velo_api; /* the function table, velo/api.h */

/* The function table of this library. needed: oldest ABI the caller runs with, major * 100 + minor;
 * table_size: sizeof(struct velo_api) as the caller compiled it, which the library fills or
 * exceeds. The table is static and never changes.
 * Thread class: any. Errors: NULL, ABI (the record names both versions and the path of this
 * library). */
VELO_API velo_status velo_get_api(uint32_t needed, uint64_t table_size,
                                  const struct velo_api** api);

/* Release numbers and the ABI this library offers (major * 100 + minor). Any pointer may be NULL.
 * Thread class: any. Errors: none. */
VELO_API velo_status velo_version(int32_t* major, int32_t* minor, int32_t* patch, uint32_t* abi);

/* Capabilities a host may ask for before it relies on them. */
typedef int32_t velo_capability;
enum {
  VELO_CAP_CLOSURES = 1 /* executable memory for closures can be had in this process */
};

/* *available = 1 or 0, probed on first use.
 * Thread class: any. Errors: NULL, ARGUMENT (unknown capability). */
VELO_API velo_status velo_capability_query(velo_capability capability, int32_t* available);

/* The whole self-description as one JSON document: functions, structs, callbacks, enumerations,
 * operators with their fields, errors; with C names, C types, offsets and sizes, so that every
 * declaration of these headers follows from it. Text calls: buffer is the caller's, always
 * zero-terminated; NULL with capacity 0 asks for the size in *needed. Thread class: any. Errors:
 * NULL, MEMORY. */
VELO_API velo_status velo_describe(char* buffer, uint64_t capacity, uint64_t* needed);

/* Number of operators.
 * Thread class: any. Errors: NULL. */
VELO_API velo_status velo_op_count(int64_t* count);
/* Name of an operator as a static string; index: 0 .. count - 1.
 * Thread class: any. Errors: NULL, ARGUMENT (index). */
VELO_API velo_status velo_op_name(int64_t index, const char** name);

/* One operator as JSON: formula source, fields with kinds, defaults, bounds, examples, kernels.
 * Aliases are accepted.
 * Thread class: any. Errors: NULL, NOT_FOUND, MEMORY. */
VELO_API velo_status velo_op_describe(const char* op, char* buffer, uint64_t capacity,
                                      uint64_t* needed);

/* A list of integers as an argument: cumulative sequence lengths, for instance. */
typedef struct velo_ints {
  const int64_t* data;
  int64_t count;
} velo_ints;

typedef int32_t velo_value_kind;
enum {
  VELO_VALUE_NONE = 0,    /* an optional argument left out */
  VELO_VALUE_INT = 1,     /* as.i: integers, booleans, enumerators, statuses */
  VELO_VALUE_FLOAT = 2,   /* as.f */
  VELO_VALUE_STRING = 3,  /* as.s: zero-terminated; of an enumeration, the short name ("bsnd") */
  VELO_VALUE_TENSOR = 4,  /* as.tensor */
  VELO_VALUE_INTS = 5,    /* as.ints */
  VELO_VALUE_HANDLE = 6,  /* as.p: any velo handle */
  VELO_VALUE_POINTER = 7, /* as.p: a struct, buffer or out-parameter */
  VELO_VALUE_TENSORS = 8  /* as.tensors: a list, given as a whole */
};

/* A tagged value, 16 bytes. Conversions are strict: a kind that does not fit is an error that names
 * the argument. */
typedef struct velo_value {
  velo_value_kind kind;
  int32_t reserved;
  union {
    int64_t i;
    double f;
    const char* s;
    const velo_tensor* tensor;
    const velo_ints* ints;
    const velo_tensors* tensors;
    void* p;
  } as;
} velo_value;

typedef struct velo_named_value {
  const char* name; /* a field of the operator's args struct: "gamma" */
  velo_value value;
} velo_named_value;

/* Runs an operator (or a registered foreign kernel) by name; fields not named keep their defaults.
 * The values are copied; data of tensors must live until the work is done.
 * Thread class: any. Errors: NULL, HANDLE, NOT_FOUND (operator or field), ARGUMENT (kind or value),
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, OVERLAP, UNSUPPORTED (no kernel serves), STATE, MEMORY,
 * FOREIGN (a foreign kernel failed), INTERNAL. */
VELO_API velo_status velo_op_call(velo_stream stream, const char* op,
                                  const velo_named_value* values, int64_t count);

/* The shape of an operator's output for given inputs. */
typedef struct velo_shape {
  uint32_t struct_size;
  int32_t ndim;
  velo_dtype dtype;
  uint32_t reserved;
  int64_t sizes[8];
  char name[32]; /* the output's field: "y" */
} velo_shape;

#define VELO_SHAPE_INIT \
  { sizeof(velo_shape), 0, {0, 0, 0}, 0, {0}, "" }

/* Computes the outputs' shapes and dtypes from the inputs, without touching data (data pointers may
 * be NULL). shapes: caller's array of capacity entries whose first entry's struct_size is set; may
 * be NULL when capacity is 0. outputs: receives how many outputs the operator has, also when
 * capacity is too small for them.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, NOT_FOUND (operator or field), ARGUMENT (kind,
 * value or capacity), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, UNSUPPORTED (a foreign kernel), STATE. */
VELO_API velo_status velo_op_infer(velo_context context, const char* op,
                                   const velo_named_value* values, int64_t count,
                                   velo_shape* shapes, int64_t capacity, int64_t* outputs);

/* Which kernel would run for these values: a JSON array in order of preference, each with name,
 * ISA, whether it was chosen and else the reason it was passed over. Same buffer rule.
 * Thread class: any. Errors: NULL, HANDLE, NOT_FOUND (operator or field), ARGUMENT (kind or value),
 * RANK, SHAPE, DTYPE, LAYOUT, DEVICE, UNSUPPORTED, STATE, MEMORY. */
VELO_API velo_status velo_op_explain(velo_context context, const char* op,
                                     const velo_named_value* values, int64_t count, char* buffer,
                                     uint64_t capacity, uint64_t* needed);

/* The work of a call of an operator. */
typedef struct velo_cost {
  uint32_t struct_size;
  uint32_t reserved;
  double flops;         /* of its products, 2 a multiply-add; masks are ignored */
  double flops_visible; /* of those, the ones that masks leave */
  double bytes_read;    /* of its inputs, each element once */
  double bytes_written; /* of its outputs, each element once */
  double seconds;       /* that the limits in the configuration allow at least; 0: unknown */
} velo_cost;

#define VELO_COST_INIT \
  { sizeof(velo_cost), 0, 0, 0, 0, 0, 0 }

/* The work of a call with these values, and the time that it takes at least, without touching data
 * (data pointers may be NULL, outputs absent). Flops are MindSpeed's count (--op-cal-tflops):
 * attention 4 a score and element of a head forward and 8 backward, sequence by sequence; operators
 * without a product have none. Bytes assume that nothing is in a cache; of a collective's traffic
 * none are counted. seconds: flops_visible or the bytes, whichever takes longer, at the keys
 * limits.f32_gflops, limits.bf16_gflops, limits.read_gbytes (calls that write nothing) and
 * limits.copy_gbytes of the context; 0 where one that the call needs is not set, and for products
 * of int8, whose rate no key has.
 * cost: struct_size is set by the caller.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, NOT_FOUND (operator or field), ARGUMENT (kind or
 * value), RANK, SHAPE, DTYPE, LAYOUT, DEVICE, UNSUPPORTED (a foreign kernel), STATE. */
VELO_API velo_status velo_op_cost(velo_context context, const char* op,
                                  const velo_named_value* values, int64_t count, velo_cost* cost);

/* The work of calls that a context has accepted. */
typedef struct velo_op_counts {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t calls;          /* calls counted */
  double flops_recorded;  /* without those counted as recomputation */
  double flops_traversed; /* all of them */
  double flops_visible;   /* of all, those that masks leave */
  double bytes_read;      /* of inputs */
  double bytes_written;   /* of outputs */
  double seconds;         /* run time of the calls that do not wait for other ranks */
  double least_seconds;   /* sum of their velo_cost.seconds; 0: limits.* are not set */
  /* calls of check.mode that agreed with the reference, whatever `counters` is */
  int64_t calls_checked;
  /* calls of check.mode without a verdict: inputs beyond the bound, or no reference for them */
  int64_t calls_not_judged;
} velo_op_counts;

#define VELO_OP_COUNTS_INIT \
  { sizeof(velo_op_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The work of the calls of an operator, or of all operators, that the context has counted: those
 * accepted while the key `counters` is on or recompute, in the terms of velo_op_cost. What is
 * counted as recompute (activations computed again for a gradient) adds to flops_traversed alone:
 * flops_recorded over time and peak are a model's utilization (MFU), flops_traversed the hardware's
 * (HFU). A program of several ranks adds up its ranks. Calls that check.mode runs again are counted
 * and not timed; the last two fields count its verdicts. op: NULL for all operators together;
 * aliases are accepted, foreign kernels have no counts. counts: struct_size is set by the caller.
 * Thread class: any. Errors: NULL, HANDLE, STRUCT, NOT_FOUND (operator), STATE, MEMORY. */
VELO_API velo_status velo_op_get_counts(velo_context context, const char* op,
                                        velo_op_counts* counts);
/* Sets the counts of all operators of a context to 0.
 * Thread class: any. Errors: NULL, HANDLE, STATE, MEMORY. */
VELO_API velo_status velo_op_reset_counts(velo_context context);

/* Calls any exported function by name. values: one per parameter, in order; result: receives the
 * returned status as an integer value, may be NULL; the call's own status is also returned, so that
 * its codes come beside those below. Integers are range-checked for the parameter's width.
 * Thread class: any, or that of the function called. Errors: NULL, NOT_FOUND (function), ARGUMENT
 * (arity or kind). */
VELO_API velo_status velo_invoke(const char* function, const velo_value* values, int64_t count,
                                 velo_value* result);

VELO_END_C

#endif
