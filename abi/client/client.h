/* What the parts of the client share: checks that count, and tensors over plain arrays.
 *
 * Frozen with the release: these sources are only ever compiled against the headers of that day. */
#ifndef CLIENT_H
#define CLIENT_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "velo/velo.h"

extern int client_checks;
extern int client_failures;

void client_report(int holds, const char* condition, const char* file, int line);

#define EXPECT(condition) client_report((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define WORKS(call) EXPECT((call) == VELO_OK)
#define CLOSE(value, wanted)                                                                \
  client_report(fabs((value) - (wanted)) <= 1e-5, #value " is close to " #wanted, __FILE__, \
                __LINE__)

/* A compact tensor over an array; shape is kept by pointer. */
velo_tensor client_tensor(const void* data, int code, int bits, int32_t ndim, const int64_t* shape);
#define TENSOR(data, code, bits, ndim, ...) \
  client_tensor(data, code, bits, ndim, (const int64_t[]){__VA_ARGS__})
#define F32(data, ndim, shape) client_tensor(data, VELO_DTYPE_FLOAT, 32, ndim, shape)

/* How far from the exact value an element may be: absolute + relative * |value| + largest * the
 * largest magnitude of the tensor. */
typedef struct {
  double absolute, relative, largest;
} client_bound;
#define BOUND(absolute, relative, largest) ((client_bound){absolute, relative, largest})

/* The elements of a tensor against numbers; in generated calls, of the field's tensor. */
void client_holds(const velo_tensor* got, client_bound bound, const double* wanted, int64_t count,
                  const char* where, const char* field);
#define HOLDS(field, bound, ...)                                                              \
  do {                                                                                        \
    const double wanted[] = {__VA_ARGS__};                                                    \
    client_holds(&field##_tensor, bound, wanted, (int64_t)(sizeof wanted / sizeof wanted[0]), \
                 __func__, #field);                                                           \
  } while (0)

/* A refused call has the code that was promised; its outputs are as they were. In generated calls,
 * of the field's memory. */
#define REFUSES(call, code) EXPECT((call) == (code))
#define KEEP(field)                                  \
  unsigned char field##_before[sizeof field##_data]; \
  memcpy(field##_before, field##_data, sizeof field##_data)
#define KEPT(field) EXPECT(memcmp(field##_before, field##_data, sizeof field##_data) == 0)

double client_seconds(void); /* for differences */

void client_operators(velo_stream stream); /* generated from the examples of abi/spec */
void client_lists(velo_stream stream);
void client_memory(velo_stream stream, velo_context context);
void client_by_name(velo_stream stream, velo_context context, const char* plugin);
void client_behavior(velo_stream stream, velo_context context);
void client_groups(velo_stream stream, velo_context context);
void client_schedules(velo_stream stream, velo_context context);
void client_tunings(void);
void client_texts(velo_stream stream, velo_context context);

#endif
