/* What the parts of the frozen 1.0 client share: the check that counts, and tensors over plain
 * arrays.
 *
 * Frozen with release 1.0: this source is only ever compiled against the headers beside it. */
#ifndef CLIENT_H
#define CLIENT_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "velo/velo.h"

extern int client_checks;
extern int client_failures;

int client_near(double value, double wanted);
void client_report(int holds, const char* condition, const char* file, int line);

#define EXPECT(condition) client_report((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define WORKS(call) EXPECT((call) == VELO_OK)
#define NEAR(value, wanted) \
  client_report(client_near(value, wanted), #value " is near " #wanted, __FILE__, __LINE__)

/* A compact tensor over an array; shape is kept by pointer. */
velo_tensor client_tensor(const void* data, int code, int bits, int32_t ndim, const int64_t* shape);
#define F32(data, ndim, shape) client_tensor(data, VELO_DTYPE_FLOAT, 32, ndim, shape)

void client_operators(velo_stream stream, velo_context context);
void client_matrices(velo_stream stream, velo_context context);
void client_by_name(velo_stream stream, velo_context context, const char* plugin);

#endif
