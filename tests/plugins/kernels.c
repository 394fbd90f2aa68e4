/* A library that never heard of velo: shapes of functions that kernels are registered from. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdint.h>
#include <time.h>

void axpy(int64_t n, float alpha, const float* x, int64_t step_x, float* y, int64_t step_y) {
  for (int64_t i = 0; i < n; ++i) y[i * step_y] += alpha * x[i * step_x];
}

void power(int32_t n, const float* x, float exponent, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] = powf(x[i], exponent);
}

/* y[i][j] = x[i][j] * 2 for a matrix whose rows lie stride apart. */
void twice(int64_t rows, int64_t columns, int64_t stride, const double* x, double* y) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = 2 * x[i * stride + j];
}

/* Everything a binding can say, written down. */
void witness(int64_t numel, int32_t rank, int64_t size, int64_t bytes, double real, int32_t whole,
             float constant, int64_t* out) {
  out[0] = numel;
  out[1] = rank;
  out[2] = size;
  out[3] = bytes;
  out[4] = (int64_t)real;
  out[5] = whole;
  out[6] = (int64_t)(constant * 2);
}

int32_t sleep_for(int64_t milliseconds, int32_t* done) {
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, 0);
  *done += 1;
  return 0;
}

int32_t returns_status(int32_t status) {
  return status;
}
