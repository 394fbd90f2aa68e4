/* What a program relies on that no type shows: alignment and pairing of memory, callbacks'
 * arguments in their order, the same bits for any number of threads, nothing written before the
 * indices are checked, calls that are queued and not run, the unit of times, the environment with
 * the variables of launchers, the kernel every operator has. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

#include "client.h"

static velo_context context_with(velo_context_desc desc) {
  velo_context context = NULL;
  WORKS(velo_context_create(&desc, &context));
  return context;
}

static velo_stream stream_of(velo_context context) {
  velo_stream stream = NULL;
  WORKS(velo_context_stream(context, &stream));
  return stream;
}

/* ---- memory: the host's allocator ---- */

#define BLOCKS 256
static struct {
  void *memory, *block;
  uint64_t bytes;
} blocks[BLOCKS];
static char memory_user;

static void* allocate(void* user, uint64_t bytes, uint64_t alignment, const velo_device* device,
                      void* stream) {
  (void)stream;
  EXPECT(user == &memory_user && device->type == VELO_DEVICE_CPU);
  EXPECT(alignment >= 64 && (alignment & (alignment - 1)) == 0);
  for (int i = 0; i < BLOCKS; ++i) {
    if (blocks[i].memory != NULL) continue;
    blocks[i].block = malloc(bytes + 2 * alignment);
    /* An odd multiple, so that memory is no better aligned than was asked for. */
    uint64_t at = ((uint64_t)(uintptr_t)blocks[i].block / alignment + 1) * alignment;
    if (at % (2 * alignment) == 0) at += alignment;
    blocks[i].memory = (void*)(uintptr_t)at, blocks[i].bytes = bytes;
    return blocks[i].memory;
  }
  return NULL;
}

static void deallocate(void* user, void* memory, uint64_t bytes, const velo_device* device,
                       void* stream) {
  (void)device, (void)stream;
  EXPECT(user == &memory_user);
  for (int i = 0; i < BLOCKS; ++i) {
    if (memory == NULL || blocks[i].memory != memory) continue;
    EXPECT(blocks[i].bytes == bytes);
    free(blocks[i].block);
    blocks[i].memory = NULL;
    return;
  }
  EXPECT(!"memory that was allocated");
}

static void memory(void) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  velo_allocator allocator;
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  velo_managed_tensor* made[16];
  memset(&allocator, 0, sizeof allocator);
  allocator.struct_size = sizeof allocator, allocator.user = &memory_user;
  allocator.allocate = allocate, allocator.deallocate = deallocate;
  desc.threads = 1, desc.allocator = &allocator;
  velo_context context = context_with(desc);
  for (int i = 0; i < 16; ++i) {
    const int64_t size = 5 * i + 1;
    WORKS(velo_tensor_create(context, &f32, 1, &size, &made[i]));
    EXPECT((uintptr_t)made[i]->tensor.data % 64 == 0 && made[i]->tensor.byte_offset == 0);
  }
  for (int i = 0; i < 16; ++i) velo_tensor_release(made[i]);
  velo_context_destroy(context);
  for (int i = 0; i < BLOCKS; ++i) EXPECT(blocks[i].memory == NULL);
}

/* ---- threads: the host's loop, and the same bits whoever runs it ---- */

static int loops = 0;
static void run(void* user, int64_t tasks, void (*task)(void* task_user, int64_t index),
                void* task_user) {
  EXPECT(user == &loops && task_user != user);
  ++loops;
  for (int64_t i = tasks - 1; i >= 0; --i) task(task_user, i);
}

#define ROWS 192
#define COLUMNS 512
static float numbers[ROWS * COLUMNS], others[ROWS * COLUMNS];

/* Results of operators whose sums are parted among threads. */
typedef struct {
  double square; /* in which a sum of other parts shows that norm would round away */
  float norm, dgamma[COLUMNS], dx[ROWS * COLUMNS], table[8 * COLUMNS], product[ROWS * ROWS], loss;
} sums;

static void compute(velo_stream stream, sums* out) {
  float lse[ROWS], rstd[ROWS];
  int64_t ids[ROWS];
  for (int i = 0; i < ROWS; ++i) ids[i] = i * i % 8, rstd[i] = 1;
  const velo_tensor x = TENSOR(numbers, VELO_DTYPE_FLOAT, 32, 2, ROWS, COLUMNS);
  const velo_tensor dy = TENSOR(others, VELO_DTYPE_FLOAT, 32, 2, ROWS, COLUMNS);
  const velo_tensor gamma = TENSOR(others, VELO_DTYPE_FLOAT, 32, 1, COLUMNS);
  const velo_tensor tid = TENSOR(ids, VELO_DTYPE_INT, 64, 1, ROWS);
  const velo_tensor tr = TENSOR(rstd, VELO_DTYPE_FLOAT, 32, 2, ROWS, 1);
  const velo_tensor tl = TENSOR(lse, VELO_DTYPE_FLOAT, 32, 1, ROWS);
  const velo_tensor norm = TENSOR(&out->norm, VELO_DTYPE_FLOAT, 32, 0, 1);
  const velo_tensor dgamma = TENSOR(out->dgamma, VELO_DTYPE_FLOAT, 32, 1, COLUMNS);
  const velo_tensor dx = TENSOR(out->dx, VELO_DTYPE_FLOAT, 32, 2, ROWS, COLUMNS);
  const velo_tensor table = TENSOR(out->table, VELO_DTYPE_FLOAT, 32, 2, 8, COLUMNS);
  const velo_tensor product = TENSOR(out->product, VELO_DTYPE_FLOAT, 32, 2, ROWS, ROWS);
  const velo_tensor loss = TENSOR(&out->loss, VELO_DTYPE_FLOAT, 32, 0, 1);
  const velo_tensor squares = TENSOR(&out->square, VELO_DTYPE_FLOAT, 64, 0, 1);

  velo_global_norm_args length = VELO_GLOBAL_NORM_ARGS_INIT;
  length.x = &x, length.sum_of_squares = &squares, length.norm = &norm;
  WORKS(velo_global_norm(stream, &length));
  velo_rms_norm_backward_args gradient = VELO_RMS_NORM_BACKWARD_ARGS_INIT;
  gradient.dy = &dy, gradient.x = &x, gradient.gamma = &gamma, gradient.rstd = &tr;
  gradient.dx = &dx, gradient.dgamma = &dgamma;
  WORKS(velo_rms_norm_backward(stream, &gradient));
  velo_embedding_backward_args rows = VELO_EMBEDDING_BACKWARD_ARGS_INIT;
  rows.ids = &tid, rows.dy = &dy, rows.dtable = &table, rows.rows = 8;
  WORKS(velo_embedding_backward(stream, &rows));
  velo_matmul_args times = VELO_MATMUL_ARGS_INIT;
  times.a = &x, times.b = &dy, times.c = &product, times.transpose_b = 1;
  WORKS(velo_matmul(stream, &times));
  velo_cross_entropy_args entropy = VELO_CROSS_ENTROPY_ARGS_INIT;
  entropy.logits = &x, entropy.targets = &tid, entropy.loss = &loss, entropy.lse = &tl;
  WORKS(velo_cross_entropy(stream, &entropy));
}

static void threads(void) {
  static sums first, other;
  velo_parallel_for host;
  memset(&host, 0, sizeof host);
  host.struct_size = sizeof host, host.user = &loops, host.run = run;
  uint32_t state = 1;
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers[i] = (float)(state >> 8) / 16777216.0f - 0.5f;
    others[i] = (float)(state >> 4 & 0xffff) / 65536.0f - 0.5f;
  }
  for (int count = 1; count <= 5; ++count) { /* the last with threads of the host's */
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = host.threads = count;
    if (count == 5) desc.parallel_for = &host;
    velo_context context = context_with(desc);
    memset(&other, 0, sizeof other);
    compute(stream_of(context), count == 1 ? &first : &other);
    if (count > 1) EXPECT(memcmp(&first, &other, sizeof first) == 0);
    velo_context_destroy(context);
  }
  EXPECT(loops > 0);
}

/* ---- refusals that come after a look at the data ---- */

static void indices(velo_stream stream) {
  const float numbers_6[6] = {1, 2, 3, 4, 5, 6};
  const int64_t wrong[3] = {0, 1, 3};
  float out[6], lse[3];
  const velo_tensor rows = TENSOR(numbers_6, VELO_DTYPE_FLOAT, 32, 2, 3, 2);
  const velo_tensor ids = TENSOR(wrong, VELO_DTYPE_INT, 64, 1, 3);
  const velo_tensor written = TENSOR(out, VELO_DTYPE_FLOAT, 32, 2, 3, 2);
  const velo_tensor each = TENSOR(out, VELO_DTYPE_FLOAT, 32, 1, 3);
  const velo_tensor sums_of = TENSOR(lse, VELO_DTYPE_FLOAT, 32, 1, 3);
  unsigned char bytes[sizeof out];
  memset(bytes, 0x5a, sizeof bytes);
  memcpy(out, bytes, sizeof out), memcpy(lse, bytes, sizeof lse);
  velo_embedding_args take = VELO_EMBEDDING_ARGS_INIT;
  take.table = &rows, take.ids = &ids, take.y = &written;
  EXPECT(velo_embedding(stream, &take) == VELO_ERR_ARGUMENT);
  velo_embedding_backward_args give = VELO_EMBEDDING_BACKWARD_ARGS_INIT;
  give.dy = &rows, give.ids = &ids, give.dtable = &written, give.rows = 3;
  EXPECT(velo_embedding_backward(stream, &give) == VELO_ERR_ARGUMENT);
  velo_cross_entropy_args lose = VELO_CROSS_ENTROPY_ARGS_INIT;
  lose.logits = &rows, lose.targets = &ids, lose.loss = &each, lose.lse = &sums_of;
  lose.reduction = VELO_REDUCTION_NONE;
  EXPECT(velo_cross_entropy(stream, &lose) == VELO_ERR_ARGUMENT);
  velo_cross_entropy_backward_args back = VELO_CROSS_ENTROPY_BACKWARD_ARGS_INIT;
  back.logits = &rows, back.targets = &ids, back.lse = &sums_of, back.dloss = &sums_of;
  back.dlogits = &written, back.reduction = VELO_REDUCTION_NONE;
  EXPECT(velo_cross_entropy_backward(stream, &back) == VELO_ERR_ARGUMENT);
  EXPECT(memcmp(out, bytes, sizeof out) == 0 && memcmp(lse, bytes, sizeof lse) == 0);
}

/* ---- streams: a call is queued, not run; times are nanoseconds ---- */

double client_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static volatile int may_end = 0, ended = 0;
static void hold(const float* x, float* y) {
  const struct timespec moment = {0, 1000000};
  for (int waited = 0; !may_end && waited < 5000; ++waited) nanosleep(&moment, NULL);
  y[0] = x[0];
  ended = 1;
}

static void queues(velo_context context) {
  const float one[1] = {1};
  float out[1] = {0}, sum[1] = {-1}, third[1] = {-1};
  const velo_tensor x = TENSOR(one, VELO_DTYPE_FLOAT, 32, 1, 1);
  const velo_tensor y = TENSOR(out, VELO_DTYPE_FLOAT, 32, 1, 1);
  const velo_tensor z = TENSOR(sum, VELO_DTYPE_FLOAT, 32, 1, 1);
  const velo_tensor matrix = TENSOR(one, VELO_DTYPE_FLOAT, 32, 2, 1, 1);
  const velo_tensor normed = TENSOR(third, VELO_DTYPE_FLOAT, 32, 2, 1, 1);
  velo_event behind = NULL;
  double before = 0;
  velo_add_args add = VELO_ADD_ARGS_INIT;
  velo_rms_norm_args norm = VELO_RMS_NORM_ARGS_INIT;
  const velo_named_value values[2] = {{"x", {VELO_VALUE_TENSOR, 0, {.tensor = &x}}},
                                      {"y", {VELO_VALUE_TENSOR, 0, {.tensor = &y}}}};
  velo_stream stream = NULL;
  velo_kernel kernel = NULL;
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  void (*function)(const float*, float*) = hold;
  int32_t done = -1;
  desc.op = "client_hold", desc.signature = "v(pp)", desc.binding = "x.data, y.data";
  desc.tensors = "in x f32, out y f32";
  memcpy(&desc.function, &function, sizeof function);
  WORKS(velo_kernel_register(context, &desc, &kernel));
  WORKS(velo_stream_create(context, &stream));
  WORKS(velo_op_call(stream, "client_hold", values, 2));
  EXPECT(!ended);
  /* Called by its type, an operator waits for its turn behind it, too. */
  add.a = add.b = &y, add.y = &z;
  WORKS(velo_add(stream, &add));
  norm.x = &matrix, norm.gamma = &x, norm.y = &normed;
  WORKS(velo_rms_norm(stream, &norm));
  EXPECT(sum[0] == -1 && third[0] == -1);
  WORKS(velo_stream_query(stream, &done));
  EXPECT(done == 0);
  WORKS(velo_event_create(context, &behind));
  WORKS(velo_event_record(behind, stream));
  before = client_seconds();
  EXPECT(velo_event_synchronize(behind, 50000000) == VELO_ERR_TIMEOUT); /* nanoseconds */
  EXPECT(client_seconds() - before > 0.04 && client_seconds() - before < 5);
  WORKS(velo_config_set(context, "queue", "4")); /* as many as it holds */
  EXPECT(velo_add(stream, &add) == VELO_ERR_FULL);
  WORKS(velo_config_set(context, "queue", "16384"));
  may_end = 1;
  WORKS(velo_stream_synchronize(stream));
  EXPECT(ended && out[0] == 1 && sum[0] == 2);
  velo_event_destroy(behind);
  CLOSE(third[0], 1);
  velo_stream_destroy(stream);
  velo_kernel_destroy(kernel);
}

/* ---- configuration and log ---- */

static int log_user = 0, lines = 0;
static void sink(void* user, velo_log_level level, const char* component, const char* line) {
  EXPECT(user == &log_user && level >= VELO_LOG_ERROR && level <= VELO_LOG_DEBUG);
  EXPECT(strchr(component, ' ') == NULL && strchr(line, ' ') != NULL);
  ++lines;
}

static void configured(void) {
  char text[64];
  const char* origin = NULL;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.log = sink, desc.log_user = &log_user;
  desc.config_json = "{\"log\": \"info\", \"level\": 2, \"kernel.add\": \"reference\"}";
  setenv("VELO_LEVEL", "1", 1);
  setenv("VELO_KERNEL_CAST", "reference", 1);
  velo_context context = context_with(desc);
  unsetenv("VELO_LEVEL"), unsetenv("VELO_KERNEL_CAST");
  WORKS(velo_config_get(context, "level", text, sizeof text, NULL, &origin));
  EXPECT(strcmp(text, "1") == 0 && strcmp(origin, "environment") == 0);
  WORKS(velo_config_get(context, "kernel.cast", text, sizeof text, NULL, &origin));
  EXPECT(strcmp(text, "reference") == 0 && strcmp(origin, "environment") == 0);

  const float one[1] = {1};
  float two[1] = {0};
  const velo_tensor a = TENSOR(one, VELO_DTYPE_FLOAT, 32, 1, 1);
  const velo_tensor y = TENSOR(two, VELO_DTYPE_FLOAT, 32, 1, 1);
  velo_add_args add = VELO_ADD_ARGS_INIT;
  add.a = &a, add.b = &a, add.y = &y;
  WORKS(velo_add(stream_of(context), &add));
  EXPECT(two[0] == 2);
  velo_context_destroy(context);
  EXPECT(lines > 0);
}

/* The variables of a launcher, of which a group reads what it is not given: with a value that is
 * wrong, each is named in the record. The others are one rank's. */
static void launched(velo_context context) {
  static const char* const launchers[][3] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES"}};
  static const char *const right[3] = {"0", "1", "1"}, *const wrong[3] = {"1", "0", "0"};
  for (int one = 0; one < 3; ++one) {
    for (int bad = 0; bad < 3; ++bad) {
      velo_group group = NULL;
      velo_error_info why = VELO_ERROR_INFO_INIT;
      for (int i = 0; i < 3; ++i) setenv(launchers[one][i], i == bad ? wrong[i] : right[i], 1);
      EXPECT(velo_group_create(context, NULL, &group) == VELO_ERR_ARGUMENT);
      WORKS(velo_last_error(&why));
      client_report(strcmp(why.argument, launchers[one][bad]) == 0, launchers[one][bad],
                    "an environment", bad);
    }
    for (int i = 0; i < 3; ++i) unsetenv(launchers[one][i]);
  }
}

void client_behavior(velo_stream stream, velo_context context) {
  memory();
  threads();
  indices(stream);
  queues(context);
  configured();
  launched(context);
}
