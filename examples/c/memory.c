/* Memory in C: a pool that a context's own memory comes from, too; a step recorded once and
 * replayed at fixed addresses; activations that wait in a file until just before their use;
 * counters, and a picture of it all.
 *
 *     memory_c DIR        the file of the swap, which has no name, and memory.svg go there
 *
 * The step has four layers: each keeps what it computed for the backward pass, which goes through
 * them in reverse. End in this order: swap, plan, context, pool.
 */
#include <stdio.h>
#include <velo/velo.h>

enum { LAYERS = 4, ROWS = 256, WIDTH = 1024, BYTES = ROWS * WIDTH * 4 };

#define TRY(call) \
  if ((call) != VELO_OK) return complain()

static int complain(void) {
  char text[1024];
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s\n", text);
  return 1;
}

/* One layer: out = in / rms(in). */
static int compute(velo_stream stream, const void* in, void* out) {
  static const int64_t shape[2] = {ROWS, WIDTH};
  static float ones[WIDTH];
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  const velo_tensor x = {(void*)in, cpu, 2, f32, shape, NULL, 0};
  const velo_tensor y = {out, cpu, 2, f32, shape, NULL, 0};
  const velo_tensor gamma = {ones, cpu, 1, f32, shape + 1, NULL, 0};
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  for (int i = 0; i < WIDTH; ++i) ones[i] = 1;
  args.x = &x;
  args.gamma = &gamma;
  args.y = &y;
  TRY(velo_rms_norm(stream, &args));
  return 0;
}

static void fill(float* memory) {
  for (int i = 0; i < ROWS * WIDTH; ++i) memory[i] = (float)(i % 251 - 125);
}

/* Allocations between begin and end belong to the step: they are recorded, or served as
 * recorded. */
static int step(velo_plan plan, velo_plan_mode mode, velo_stream stream) {
  void* kept[LAYERS + 1];
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = BYTES;
  request.purpose = VELO_PURPOSE_ACTIVATION;
  TRY(velo_plan_begin(plan, mode));
  for (int layer = 0; layer <= LAYERS; ++layer) {
    TRY(velo_plan_allocate(plan, &request, &kept[layer]));
    if (layer == 0) fill(kept[0]);
    if (layer > 0 && compute(stream, kept[layer - 1], kept[layer]) != 0) return 1;
  }
  for (int layer = LAYERS; layer >= 0; --layer) TRY(velo_plan_free(plan, kept[layer], BYTES, NULL));
  TRY(velo_plan_end(plan));
  return 0;
}

static int planned(velo_pool pool, velo_stream stream) {
  velo_plan plan;
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  velo_plan_stats stats = VELO_PLAN_STATS_INIT;
  velo_plan_step last = VELO_PLAN_STEP_INIT;
  desc.pool = pool;
  TRY(velo_plan_create(&desc, &plan));
  if (step(plan, VELO_PLAN_RECORD, stream) != 0) return 1;
  TRY(velo_plan_solve(plan, NULL));
  for (int i = 0; i < 3; ++i)
    if (step(plan, VELO_PLAN_REPLAY, stream) != 0) return 1;
  TRY(velo_plan_get_stats(plan, &stats));
  TRY(velo_plan_get_step(plan, &last));
  printf("plan: %llu bytes where %llu is the least, %llu of %llu requests at their addresses\n",
         (unsigned long long)stats.height, (unsigned long long)stats.lower_bound,
         (unsigned long long)last.matched, (unsigned long long)last.allocations);
  velo_plan_destroy(plan);
  return 0;
}

/* Forward, each activation leaves as soon as the layer above it has been computed; backward, it is
 * fetched one layer ahead, so that disk and processor work at the same time. */
static int swapped(velo_swap swap, velo_stream stream) {
  uint64_t kept[LAYERS + 1];
  velo_swap_object info = VELO_SWAP_OBJECT_INIT;
  velo_swap_stats stats = VELO_SWAP_STATS_INIT;
  float sum = 0;
  void* below = NULL;
  for (int layer = 0; layer <= LAYERS; ++layer) {
    TRY(velo_swap_add(swap, NULL, BYTES, VELO_SWAP_WARM, &kept[layer]));
    TRY(velo_swap_get_object(swap, kept[layer], &info));
    if (layer == 0) fill(info.memory);
    if (layer > 0 && compute(stream, below, info.memory) != 0) return 1;
    if (layer > 0) TRY(velo_swap_out(swap, kept[layer - 1], stream, NULL));
    below = info.memory;
  }
  for (int layer = LAYERS; layer >= 0; --layer) {
    if (layer > 0) TRY(velo_swap_in(swap, kept[layer - 1], NULL, stream, NULL));
    TRY(velo_swap_wait(swap, kept[layer], stream)); /* reports a failed or damaged copy */
    TRY(velo_swap_get_object(swap, kept[layer], &info));
    sum += ((const float*)info.memory)[0];
    TRY(velo_swap_drop(swap, kept[layer], NULL));
  }
  TRY(velo_swap_get_stats(swap, &stats));
  printf("swap: %llu bytes out and %llu back by %s, sum %.3f\n",
         (unsigned long long)stats.bytes_out, (unsigned long long)stats.bytes_in, stats.how, sum);
  return 0;
}

static int report(velo_pool pool, const char* directory) {
  char path[4096];
  velo_pool_stats stats = VELO_POOL_STATS_INIT;
  TRY(velo_pool_get_stats(pool, &stats));
  printf("pool: %llu blocks, peak %llu bytes live and %llu reserved; context and swap have %llu\n",
         (unsigned long long)stats.allocations, (unsigned long long)stats.bytes_peak,
         (unsigned long long)stats.bytes_reserved_peak,
         (unsigned long long)stats.purpose_live[VELO_PURPOSE_WORKSPACE]);
  snprintf(path, sizeof path, "%s/memory.svg", directory);
  TRY(velo_pool_save(pool, VELO_SNAPSHOT_TIMELINE, path));
  printf("picture: %s\n", path);
  return 0;
}

int main(int count, char** words) {
  velo_pool pool;
  velo_allocator allocator = VELO_ALLOCATOR_INIT;
  velo_context_desc context_desc = VELO_CONTEXT_DESC_INIT;
  velo_context context;
  velo_stream stream;
  velo_swap_desc swap_desc = VELO_SWAP_DESC_INIT;
  velo_swap swap;
  if (count != 2) return fprintf(stderr, "usage: memory_c DIR\n"), 1;

  TRY(velo_pool_create(NULL, &pool));
  TRY(velo_pool_record(pool, 4096)); /* the last so many events, for the picture */
  TRY(velo_pool_allocator(pool, &allocator));
  context_desc.allocator = &allocator;
  TRY(velo_context_create(&context_desc, &context));
  TRY(velo_context_stream(context, &stream));

  TRY(velo_pool_note(pool, NULL, "a planned step"));
  if (planned(pool, stream) != 0) return 1;

  TRY(velo_pool_note(pool, NULL, "a step with swap"));
  swap_desc.tier = VELO_SWAP_DISK;
  swap_desc.directories = words[1];
  swap_desc.memory = pool;
  TRY(velo_swap_create(context, &swap_desc, &swap));
  if (swapped(swap, stream) != 0 || report(pool, words[1]) != 0) return 1;

  velo_swap_destroy(swap);
  velo_context_destroy(context);
  velo_pool_destroy(pool);
  return 0;
}
