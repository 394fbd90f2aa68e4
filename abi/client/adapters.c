/* A program of this release that uses the adapters: every function of velo/adapters.h, and an
 * operator in MindSpore's convention, by itself and through a slot. Linked, like the client, to
 * empty libraries of that day and run with those of today. */
#include "velo/adapters.h"

#include "client.h"

int velo_ms_add(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                void* stream, void* extra);
int velo_ms_slot_007(int count, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                     void* stream, void* extra);

int client_checks = 0;
int client_failures = 0;

void client_report(int holds, const char* condition, const char* file, int line) {
  ++client_checks;
  if (holds) return;
  ++client_failures;
  char text[1024] = "";
  velo_adapters_last_error(text, sizeof text, NULL);
  fprintf(stderr, "%s:%d: %s\n  last error: %s\n", file, line, condition, text);
}

static int lines = 0;
static void sink(void* user, velo_log_level level, const char* component, const char* line) {
  EXPECT(user == &lines && level == VELO_LOG_ERROR);
  EXPECT(strchr(component, ' ') == NULL && strstr(line, "velo_") != NULL);
  ++lines;
}

static int64_t two[1] = {2}, three[1] = {3}, row[2] = {1, 2};

static void entries(void) {
  float a[2] = {1, 2}, b[2] = {10, 20}, y[2] = {0, 0};
  void* params[3] = {a, b, y};
  int ndims[3] = {1, 1, 1};
  int64_t* shapes[3] = {two, two, two};
  const char* dtypes[3] = {"float32", "float32", "float32"};
  char text[1024] = "";
  uint64_t needed = 0;
  EXPECT(velo_ms_add(3, params, ndims, shapes, dtypes, NULL, NULL) == 0);
  EXPECT(y[0] == 11 && y[1] == 22);
  shapes[1] = three;
  WORKS(velo_adapters_set_log(sink, &lines));
  EXPECT(velo_ms_add(3, params, ndims, shapes, dtypes, NULL, NULL) != 0);
  EXPECT(lines == 1);
  WORKS(velo_adapters_set_log(NULL, NULL));
  WORKS(velo_adapters_last_error(NULL, 0, &needed));
  EXPECT(needed > 10 && needed <= sizeof text);
  WORKS(velo_adapters_last_error(text, sizeof text, NULL));
  EXPECT(strstr(text, "velo_ms_add") != NULL && strlen(text) + 1 == needed);
}

static void slots(void) {
  float x[2] = {1, 1}, gamma[2] = {1, 3}, y[2] = {0, 0};
  void* params[3] = {x, gamma, y};
  int ndims[3] = {2, 1, 2};
  int64_t* shapes[3] = {row, two, row};
  const char* dtypes[3] = {"float32", "float32", "float32"};
  int32_t chosen = -1;
  WORKS(velo_ms_slot_bind(7, "rms_norm", "{\"epsilon\": 3, \"fields\": \"x,gamma->y\"}", &chosen));
  EXPECT(chosen == 7);
  EXPECT(velo_ms_slot_007(3, params, ndims, shapes, dtypes, NULL, NULL) == 0);
  CLOSE(y[0], 0.5), CLOSE(y[1], 1.5);
  {
    int64_t rows[2] = {-1, 2};
    const velo_device cpu = {VELO_DEVICE_CPU, 0};
    const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
    const velo_tensor inputs[2] = {{NULL, cpu, 2, f32, rows, NULL, 0},
                                   {NULL, cpu, 1, f32, two, NULL, 0}};
    velo_shape shape = VELO_SHAPE_INIT;
    WORKS(velo_ms_slot_infer(7, inputs, 2, &shape, 1));
    EXPECT(shape.ndim == 2 && shape.sizes[0] == -1 && shape.sizes[1] == 2);
  }
  EXPECT(velo_ms_slot_bind(512, "rms_norm", NULL, NULL) == VELO_ERR_ARGUMENT);
  EXPECT(velo_ms_slot_bind(8, "no_such_operator", NULL, NULL) == VELO_ERR_NOT_FOUND);
  EXPECT(velo_ms_slot_bind(8, "rms_norm", "{", NULL) == VELO_ERR_PARSE);
  WORKS(velo_ms_slot_release(7));
  EXPECT(velo_ms_slot_007(3, params, ndims, shapes, dtypes, NULL, NULL) == VELO_ERR_STATE);
}

int main(void) {
  velo_context given = NULL, used = NULL;
  WORKS(velo_context_create(NULL, &given));
  WORKS(velo_adapters_context(&used));
  EXPECT(used != NULL && used != given);
  WORKS(velo_adapters_set_context(given));
  WORKS(velo_adapters_context(&used));
  EXPECT(used == given);
  entries();
  slots();
  WORKS(velo_adapters_set_context(NULL));
  velo_context_destroy(given);
  printf("adapters: %d checks, %d failed\n", client_checks, client_failures);
  return client_failures == 0 ? 0 : 1;
}
