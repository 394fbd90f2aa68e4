/* A program of this release, kept as it was when the release ships: calls every function once and
 * knows the results. It is compiled against the headers of that day, linked to an empty library of
 * that day's names, and run with the library of today.
 *
 *   client PLUGIN.so
 *
 * This part: errors, tensors, contexts, configuration, streams, events, packs, and memory: pools,
 * plans, swaps, recompute, and topologies. groups.c has groups, by_name.c what goes by name, behavior.c
 * what no type shows; the calls of the operators follow from the examples of abi/spec.
 */
#include "client.h"

int client_checks = 0;
int client_failures = 0;

void client_report(int holds, const char* condition, const char* file, int line) {
  ++client_checks;
  if (holds) return;
  ++client_failures;
  char text[1024] = "";
  velo_error_text(text, sizeof text, NULL);
  fprintf(stderr, "%s:%d: %s\n  last error: %s\n", file, line, condition, text);
}

velo_tensor client_tensor(const void* data, int code, int bits, int32_t ndim,
                          const int64_t* shape) {
  velo_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = (void*)data;
  tensor.device.type = VELO_DEVICE_CPU;
  tensor.ndim = ndim;
  tensor.dtype.code = (uint8_t)code;
  tensor.dtype.bits = (uint8_t)bits;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static double element(const velo_tensor* tensor, int64_t index) {
  const void* data = tensor->data;
  if (tensor->dtype.code == VELO_DTYPE_INT && tensor->dtype.bits == 64)
    return (double)((const int64_t*)data)[index];
  if (tensor->dtype.code == VELO_DTYPE_INT) return ((const int32_t*)data)[index];
  if (tensor->dtype.code == VELO_DTYPE_UINT) return ((const uint8_t*)data)[index];
  if (tensor->dtype.bits == 64) return ((const double*)data)[index];
  if (tensor->dtype.bits == 32) return ((const float*)data)[index];
  const uint32_t bits = (uint32_t)((const uint16_t*)data)[index] << 16;
  float wide;
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

void client_holds(const velo_tensor* got, client_bound bound, const double* wanted, int64_t count,
                  const char* where, const char* field) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = fmax(largest, fabs(wanted[i]));
  for (int64_t i = 0; i < count; ++i) {
    const double value = element(got, i), exact = wanted[i];
    const double allowed = bound.absolute + bound.relative * fabs(exact) + bound.largest * largest;
    char condition[256];
    snprintf(condition, sizeof condition, "%s[%d] is %.9g, wanted %.9g", field, (int)i, value,
             exact);
    client_report(fabs(value - exact) <= allowed, condition, where, (int)i);
  }
}

static int log_lines = 0;
static void count_lines(void* user, velo_log_level level, const char* component, const char* line) {
  (void)user, (void)level, (void)component, (void)line;
  ++log_lines;
}

static void errors(velo_context context) {
  char text[256];
  uint64_t needed = 0;
  const char *name = NULL, *meaning = NULL;
  velo_error_info info = VELO_ERROR_INFO_INIT;
  EXPECT(velo_config_set(context, "no.such.key", "1") == VELO_ERR_NOT_FOUND);
  WORKS(velo_last_error(&info));
  EXPECT(info.code == VELO_ERR_NOT_FOUND);
  EXPECT(strcmp(info.function, "velo_config_set") == 0);
  EXPECT(info.rank == -1);
  WORKS(velo_error_text(NULL, 0, &needed));
  EXPECT(needed > strlen("velo_config_set"));
  WORKS(velo_error_text(text, sizeof text, NULL));
  EXPECT(strstr(text, "velo_config_set") != NULL);
  WORKS(velo_status_describe(VELO_ERR_SHAPE, &name, &meaning));
  EXPECT(strcmp(name, "VELO_ERR_SHAPE") == 0 && meaning[0] != 0);
  EXPECT(velo_status_describe(12345, &name, &meaning) == VELO_ERR_ARGUMENT);
}

static int deleted = 0;
static void count_deletion(velo_managed_tensor* self) {
  (void)self;
  ++deleted;
}

static void tensors(velo_context context) {
  const int64_t shape[2] = {3, 4};
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  velo_managed_tensor* made = NULL;
  velo_tensor view;
  uint64_t bytes = 0;
  WORKS(velo_tensor_create(context, &f32, 2, shape, &made));
  EXPECT(made != NULL && made->version.major == 1 && made->tensor.shape[1] == 4);
  memset(made->tensor.data, 0, 48);
  WORKS(velo_tensor_import(context, made, &view));
  EXPECT(view.data == made->tensor.data && view.ndim == 2);
  WORKS(velo_tensor_extent(&view, &bytes));
  EXPECT(bytes == 48);
  velo_tensor_release(made);

  velo_managed_tensor foreign;
  memset(&foreign, 0, sizeof foreign);
  foreign.version.major = 2;
  foreign.tensor = F32(&bytes, 0, shape);
  EXPECT(velo_tensor_import(context, &foreign, &view) == VELO_ERR_ABI);
  foreign.version.major = 1;
  foreign.deleter = count_deletion;
  WORKS(velo_tensor_import(context, &foreign, &view));
  velo_tensor_release(&foreign);
  EXPECT(deleted == 1);
}

static void configuration(velo_context context) {
  char text[64];
  const char* origin = NULL;
  uint64_t needed = 0;
  struct {
    velo_context_stats now;
    uint64_t
        untouched; /* a newer library, whose struct is longer, writes no further than this one */
  } stats;
  memset(&stats, 0x5a, sizeof stats);
  stats.now.struct_size = sizeof stats.now;
  WORKS(velo_config_set(context, "level", "1"));
  WORKS(velo_config_get(context, "level", text, sizeof text, &needed, &origin));
  EXPECT(strcmp(text, "1") == 0 && strcmp(origin, "code") == 0 && needed == 2);
  WORKS(velo_config_set(context, "level", "2"));
  WORKS(velo_config_list(context, NULL, 0, &needed));
  EXPECT(needed > 100);
  WORKS(velo_context_get_stats(context, &stats.now));
  EXPECT(stats.now.threads == 2 && stats.now.allocations >= 1);
  EXPECT(stats.untouched == 0x5a5a5a5a5a5a5a5au);
}

static void order(velo_context context) {
  velo_stream stream = NULL;
  velo_event event = NULL;
  int32_t done = -1;
  WORKS(velo_stream_create(context, &stream));
  WORKS(velo_event_create(context, &event));
  EXPECT(velo_event_query(event, &done) == VELO_ERR_STATE);
  WORKS(velo_event_record(event, stream));
  WORKS(velo_stream_wait(stream, event));
  WORKS(velo_event_synchronize(event, 1000000000));
  WORKS(velo_event_query(event, &done));
  EXPECT(done == 1);
  WORKS(velo_stream_synchronize(stream));
  WORKS(velo_stream_query(stream, &done));
  EXPECT(done == 1);
  WORKS(velo_stream_clear(stream));
  velo_event_destroy(event);
  velo_stream_destroy(stream);
  EXPECT(velo_stream_synchronize(stream) == VELO_ERR_HANDLE);
}

/* A struct of a release to come, asking for something: refused; asking for nothing: as if it were
 * the old struct. */
static void later_structs(velo_stream stream) {
  const float x[4] = {1, 1, -1, -1}, gamma[4] = {1, 2, 3, 4};
  float y[4] = {0};
  const velo_tensor tx = TENSOR(x, VELO_DTYPE_FLOAT, 32, 2, 1, 4);
  const velo_tensor tg = TENSOR(gamma, VELO_DTYPE_FLOAT, 32, 1, 4);
  const velo_tensor ty = TENSOR(y, VELO_DTYPE_FLOAT, 32, 2, 1, 4);
  struct {
    velo_rms_norm_args now;
    uint64_t later[64]; /* further than any release to come is likely to reach */
  } grown = {VELO_RMS_NORM_ARGS_INIT, {0}};
  grown.now.x = &tx, grown.now.gamma = &tg, grown.now.y = &ty;
  grown.now.struct_size = sizeof grown;
  grown.later[63] = 1;
  EXPECT(velo_rms_norm(stream, &grown.now) == VELO_ERR_UNSUPPORTED && y[1] == 0);
  grown.later[63] = 0;
  WORKS(velo_rms_norm(stream, &grown.now));
  NEAR(y[1], 2);
}

static void packs(velo_stream stream, velo_context context) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  float c[4] = {0};
  const velo_tensor ta = TENSOR(a, VELO_DTYPE_FLOAT, 32, 2, 2, 3);
  const velo_tensor tb = TENSOR(b, VELO_DTYPE_FLOAT, 32, 2, 3, 2);
  const velo_tensor tc = TENSOR(c, VELO_DTYPE_FLOAT, 32, 2, 2, 2);
  velo_pack pack = NULL;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  velo_matmul_args product = VELO_MATMUL_ARGS_INIT;
  desc.k = 3, desc.n = 2;
  WORKS(velo_pack_create(context, &desc, &pack));
  WORKS(velo_pack_update(stream, pack, &tb));
  product.a = &ta, product.packed = pack, product.c = &tc;
  WORKS(velo_matmul(stream, &product));
  NEAR(c[0], 4), NEAR(c[3], 11);
  velo_pack_destroy(pack);
  EXPECT(velo_matmul(stream, &product) == VELO_ERR_HANDLE);
}

static int32_t failures_told = 0;
static int32_t count_failures(void* user, velo_memory_event event, void* memory, uint64_t bytes,
                              void* stream) {
  (void)user, (void)stream;
  if (event == VELO_MEMORY_FAILED && memory == NULL && bytes == 101) ++failures_told;
  return 0;
}

static void adaptors(const velo_allocator* below) {
  velo_adaptor limit = NULL, told = NULL;
  velo_allocator limited = VELO_ALLOCATOR_INIT, telling = VELO_ALLOCATOR_INIT;
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  velo_adaptor_stats stats = VELO_ADAPTOR_STATS_INIT;
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  void* block = NULL;
  desc.kind = VELO_ADAPTOR_LIMIT, desc.upstream = below, desc.limit = 100;
  WORKS(velo_adaptor_create(&desc, &limit));
  WORKS(velo_adaptor_allocator(limit, &limited));
  desc.kind = VELO_ADAPTOR_CALLBACK, desc.upstream = &limited, desc.event = count_failures;
  WORKS(velo_adaptor_create(&desc, &told));
  WORKS(velo_adaptor_allocator(told, &telling));
  block = telling.allocate(telling.user, 100, 64, &cpu, NULL);
  EXPECT(block != NULL);
  EXPECT(telling.allocate(telling.user, 101, 64, &cpu, NULL) == NULL && failures_told == 1);
  WORKS(velo_adaptor_get_stats(limit, &stats));
  EXPECT(stats.bytes_live == 100 && stats.allocations == 1 && stats.failures == 1);
  telling.deallocate(telling.user, block, 100, &cpu, NULL);
  WORKS(velo_adaptor_flush(told));
  velo_adaptor_destroy(told);
  EXPECT(velo_adaptor_flush(told) == VELO_ERR_HANDLE);
  velo_adaptor_destroy(limit);
}

static void shown(velo_pool pool) {
  velo_pool_stream_stats stats = VELO_POOL_STREAM_STATS_INIT;
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  char start[16];
  uint64_t needed = 0;
  void* block = NULL;
  EXPECT(velo_pool_note(pool, NULL, "step 1") == VELO_ERR_STATE);
  WORKS(velo_pool_record(pool, 10));
  WORKS(velo_pool_note(pool, NULL, "step 1"));
  request.bytes = 100;
  WORKS(velo_pool_allocate(pool, &request, &block));
  WORKS(velo_pool_get_stream_stats(pool, NULL, &stats));
  EXPECT(stats.blocks_live == 1 && stats.bytes_live >= 100 && stats.bytes_pending == 0);
  WORKS(velo_pool_snapshot(pool, VELO_SNAPSHOT_JSON, start, sizeof start, &needed));
  EXPECT(needed > 1000 && strcmp(start, "{\"segments\":[{\"") == 0);
  EXPECT(velo_pool_save(pool, VELO_SNAPSHOT_PICKLE, "/no such folder/x") == VELO_ERR_IO);
  WORKS(velo_pool_free(pool, block, 100, NULL));
}

static void pools(velo_stream stream) {
  velo_pool pool = NULL;
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  velo_allocator allocator = VELO_ALLOCATOR_INIT;
  velo_pool_stats stats = VELO_POOL_STATS_INIT;
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  unsigned char* block = NULL;
  void *other = NULL, *functions[2] = {NULL, NULL};
  void* (*plain)(int64_t, int32_t, void*) = NULL;
  void (*plain_free)(void*, int64_t, int32_t, void*) = NULL;
  int32_t file = -1;
  uint64_t offset = 0, released = 0;
  desc.kind = VELO_POOL_SHARED, desc.checked = 1, desc.limit = 1 << 26;
  WORKS(velo_pool_create(&desc, &pool));
  request.bytes = 1000, request.alignment = 4096, request.zero = 1;
  request.purpose = VELO_PURPOSE_ACTIVATION;
  WORKS(velo_pool_allocate(pool, &request, &other));
  block = other;
  EXPECT((uintptr_t)block % 4096 == 0 && block[0] == 0 && block[999] == 0);
  WORKS(velo_pool_check(pool));
  WORKS(velo_pool_locate(pool, block, &file, &offset));
  EXPECT(file >= 0);
  WORKS(velo_pool_get_stats(pool, &stats));
  EXPECT(stats.bytes_live - stats.bytes_rounding == 1000 && stats.allocations == 1);
  EXPECT(stats.purpose_live[VELO_PURPOSE_ACTIVATION] == stats.bytes_live);
  EXPECT(velo_pool_free(pool, block, 999, stream) == VELO_ERR_ARGUMENT);
  WORKS(velo_pool_free(pool, block, 1000, stream));
  EXPECT(velo_pool_free(pool, block, 1000, stream) == VELO_ERR_ARGUMENT);
  WORKS(velo_pool_set_limit(pool, 1 << 20));
  request.bytes = 1 << 21;
  EXPECT(velo_pool_allocate(pool, &request, &other) == VELO_ERR_MEMORY && other == block);
  WORKS(velo_pool_trim(pool, 0, &released));
  EXPECT(released > 0);
  WORKS(velo_pool_allocator(pool, &allocator));
  WORKS(velo_pool_functions(pool, &functions[0], &functions[1]));
  memcpy(&plain, &functions[0], sizeof plain);
  memcpy(&plain_free, &functions[1], sizeof plain_free);
  other = plain(100, 0, NULL);
  EXPECT(other != NULL);
  WORKS(velo_pool_get_stats(pool, &stats));
  EXPECT(stats.bytes_live - stats.bytes_rounding == 100);
  plain_free(other, 100, 0, NULL);
  other = allocator.allocate(allocator.user, 64, 64, &cpu, NULL);
  EXPECT(other != NULL);
  allocator.deallocate(allocator.user, other, 64, &cpu, NULL);
  adaptors(&allocator);
  shown(pool);
  velo_pool_destroy(pool);
  EXPECT(velo_pool_check(pool) == VELO_ERR_HANDLE);
  EXPECT(allocator.allocate(allocator.user, 64, 64, &cpu, NULL) == NULL);
}

static void plans(void) {
  static const char text[] = "id,lower,upper,size\nfirst,0,4,64\nsecond,2,6,128\n";
  velo_plan plan = NULL;
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  velo_plan_options options = VELO_PLAN_OPTIONS_INIT;
  velo_plan_buffer buffer = VELO_PLAN_BUFFER_INIT;
  velo_plan_stats stats = VELO_PLAN_STATS_INIT;
  char out[256];
  uint64_t needed = 0;
  int64_t index = -1;
  desc.capacity = 192;
  WORKS(velo_plan_create(&desc, &plan));
  WORKS(velo_plan_read(plan, VELO_PLAN_CSV, text, sizeof text - 1));
  EXPECT(velo_plan_add(plan, 4, 4, 64, &index) == VELO_ERR_ARGUMENT && index == -1);
  WORKS(velo_plan_add(plan, 4, 9, 64, &index));
  EXPECT(index == 2);
  EXPECT(velo_plan_write(plan, VELO_PLAN_CSV, NULL, 0, &needed) == VELO_ERR_STATE);
  options.seconds = 1;
  WORKS(velo_plan_solve(plan, &options));
  WORKS(velo_plan_get_stats(plan, &stats));
  EXPECT(stats.solved == 1 && stats.buffers == 3 && stats.capacity == 192);
  EXPECT(stats.lower_bound == 192 && stats.height == 192);
  WORKS(velo_plan_get_buffer(plan, 1, &buffer));
  EXPECT(buffer.lower == 2 && buffer.upper == 6 && buffer.bytes == 128);
  EXPECT(buffer.offset == 0 || buffer.offset == 64);
  WORKS(velo_plan_write(plan, VELO_PLAN_CSV, out, sizeof out, &needed));
  EXPECT(needed == strlen(out) + 1 && strncmp(out, "id,lower,upper,size,offset\n", 27) == 0);
  velo_plan_destroy(plan);
  EXPECT(velo_plan_get_stats(plan, &stats) == VELO_ERR_HANDLE);
}

static void plan_steps(void) {
  velo_pool pool = NULL;
  velo_plan plan = NULL;
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  velo_plan_use_info use = VELO_PLAN_USE_INFO_INIT;
  velo_plan_step step = VELO_PLAN_STEP_INIT;
  velo_swap_options swaps = VELO_SWAP_OPTIONS_INIT;
  velo_plan_swap_stats swapped = VELO_PLAN_SWAP_STATS_INIT;
  velo_plan_swap swap = VELO_PLAN_SWAP_INIT;
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  velo_allocator through = VELO_ALLOCATOR_INIT;
  void* memory = NULL;
  int round = 0;
  WORKS(velo_pool_create(NULL, &pool));
  desc.pool = pool;
  WORKS(velo_plan_create(&desc, &plan));
  WORKS(velo_plan_allocator(plan, &through));
  request.bytes = 1000;
  EXPECT(velo_plan_end(plan) == VELO_ERR_STATE);
  for (round = 0; round < 2; ++round) {
    WORKS(velo_plan_begin(plan, round == 0 ? VELO_PLAN_RECORD : VELO_PLAN_REPLAY));
    WORKS(velo_plan_allocate(plan, &request, &memory));
    WORKS(velo_plan_use(plan, memory, VELO_ACCESS_WRITE));
    WORKS(velo_plan_work(plan, 0.5));
    WORKS(velo_plan_free(plan, memory, 1000, NULL));
    WORKS(velo_plan_end(plan));
    if (round == 0) WORKS(velo_plan_solve(plan, NULL));
  }
  WORKS(velo_plan_get_step(plan, &step));
  EXPECT(step.mode == VELO_PLAN_REPLAY && step.steps == 2 && step.allocations == 1);
  EXPECT(step.matched == 1 && step.missing == 0 && step.bytes_live == 0);
  WORKS(velo_plan_get_use(plan, 0, &use));
  EXPECT(use.buffer == 0 && use.access == VELO_ACCESS_WRITE && use.time == 1);
  WORKS(velo_plan_add_use(plan, 0, 2, VELO_ACCESS_READ));
  WORKS(velo_plan_add_work(plan, 2, 0.25));
  swaps.budget = 1024;
  WORKS(velo_plan_solve_swaps(plan, &swaps));
  WORKS(velo_plan_get_swap_stats(plan, &swapped));
  EXPECT(swapped.solved == 1 && swapped.transfers == 0 && swapped.compute_seconds == 0.75);
  EXPECT(velo_plan_get_swap(plan, 0, &swap) == VELO_ERR_ARGUMENT);
  memory = through.allocate(through.user, 64, 64, NULL, NULL);
  EXPECT(memory != NULL);
  through.deallocate(through.user, memory, 64, NULL, NULL);
  velo_plan_destroy(plan);
  velo_pool_destroy(pool);
}

static void topologies(void) {
  velo_topology topology = NULL;
  velo_topology_traffic traffic = VELO_TOPOLOGY_TRAFFIC_INIT;
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  velo_topology_info info = VELO_TOPOLOGY_INFO_INIT;
  velo_topology_family family = VELO_TOPOLOGY_FAMILY_INIT;
  velo_topology_place place = VELO_TOPOLOGY_PLACE_INIT;
  int32_t ranks[4] = {-1, -1, -1, -1};
  int64_t count = 0;
  const char* name = NULL;
  char out[64];
  traffic.sequence = 1 << 20;
  desc.traffic = &traffic;
  desc.tp = 2;
  desc.dp = 3;
  desc.ep = 4;
  EXPECT(velo_topology_create(&desc, &topology) == VELO_ERR_ARGUMENT && topology == NULL);
  desc.ep = 3;
  WORKS(velo_topology_create(&desc, &topology));
  WORKS(velo_topology_get_info(topology, &info));
  EXPECT(info.ranks == 6 && info.etp == 2 && info.edp == 1);
  WORKS(velo_topology_family_name(topology, 0, &name));
  EXPECT(strcmp(name, "tp") == 0);
  WORKS(velo_topology_get_family(topology, "tp", &family));
  EXPECT(family.groups == 3 && family.size == 2 && family.buffer == 4 << 20);
  EXPECT(strcmp(family.key, "tp") == 0 && family.twin_of == NULL);
  WORKS(velo_topology_get_place(topology, "ep", 3, &place));
  EXPECT(place.group == 1 && place.position == 1);
  WORKS(velo_topology_get_group(topology, "ep", 1, ranks, 2, &count));
  EXPECT(count == 3 && ranks[0] == 1 && ranks[1] == 3 && ranks[2] == -1);
  WORKS(velo_topology_write(topology, "tp-pp", VELO_TOPOLOGY_JSON, out, sizeof out, NULL));
  EXPECT(strcmp(out, "[[0, 1], [2, 3], [4, 5]]") == 0);
  velo_topology_destroy(topology);
  EXPECT(velo_topology_get_info(topology, &info) == VELO_ERR_HANDLE);
}

static velo_status square_seed(void* user, const velo_recompute_call* call) {
  *(uint64_t*)call->outputs[0] = call->seed * call->seed + *(const uint64_t*)call->inputs[0];
  ++*(int*)user;
  return call->struct_size >= 72 && call->name[0] == 'r' ? VELO_OK : VELO_ERR_STATE;
}

static void regions(void) {
  static const uint64_t saved = 3, bytes = 64;
  velo_pool pool = NULL;
  velo_recompute kept = NULL;
  velo_allocator below = VELO_ALLOCATOR_INIT;
  velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  velo_recompute_stats stats = VELO_RECOMPUTE_STATS_INIT;
  velo_recompute_input input = {&saved, -1, 0};
  void* memory = NULL;
  int64_t index = -1;
  int calls = 0;
  WORKS(velo_pool_create(NULL, &pool));
  WORKS(velo_pool_allocator(pool, &below));
  desc.allocator = &below;
  WORKS(velo_recompute_create(&desc, &kept));
  region.name = "region";
  region.restore = &square_seed;
  region.user = &calls;
  region.inputs = &input;
  region.input_count = 1;
  region.output_bytes = &bytes;
  region.output_count = 1;
  region.seed = 7;
  WORKS(velo_recompute_add(kept, &region, NULL, &index));
  WORKS(velo_recompute_get_output(kept, index, 0, &memory));
  WORKS(velo_recompute_release(kept, index, NULL));
  EXPECT(velo_recompute_get_output(kept, index, 0, &memory) == VELO_ERR_STATE);
  WORKS(velo_recompute_restore(kept, index, NULL));
  WORKS(velo_recompute_restore(kept, index, NULL));
  WORKS(velo_recompute_get_output(kept, index, 0, &memory));
  EXPECT(calls == 1 && *(uint64_t*)memory == 52);
  WORKS(velo_recompute_get_stats(kept, &stats));
  EXPECT(stats.regions == 1 && stats.bytes == 64 && stats.restores == 1);
  WORKS(velo_recompute_end(kept, index, NULL));
  EXPECT(velo_recompute_end(kept, index, NULL) == VELO_ERR_ARGUMENT);
  velo_recompute_destroy(kept);
  EXPECT(velo_recompute_get_stats(kept, &stats) == VELO_ERR_HANDLE);
  velo_pool_destroy(pool);
}

static void recompute_plans(void) {
  static const int64_t none = 0, both[2] = {0, 1};
  velo_recompute_plan plan = NULL;
  velo_recompute_op op = VELO_RECOMPUTE_OP_INIT;
  velo_recompute_plan_options options = VELO_RECOMPUTE_PLAN_OPTIONS_INIT;
  velo_recompute_step step = VELO_RECOMPUTE_STEP_INIT;
  velo_recompute_plan_stats stats = VELO_RECOMPUTE_PLAN_STATS_INIT;
  int64_t index = -1;
  WORKS(velo_recompute_plan_create(&plan));
  op.seconds = 1;
  op.bytes = 100;
  WORKS(velo_recompute_plan_add(plan, &op, &index)); /* 0, taken by 1 and, in the end, by 3 */
  op.inputs = &none;
  op.input_count = 1;
  WORKS(velo_recompute_plan_add(plan, &op, &index));
  op.inputs = both + 1;
  op.workspace = 100;
  op.bytes = 10;
  WORKS(velo_recompute_plan_add(plan, &op, &index));
  EXPECT(index == 2);
  op.inputs = both;
  op.workspace = 0;
  op.keep = 1;
  WORKS(velo_recompute_plan_add(plan, &op, NULL));
  EXPECT(velo_recompute_plan_get_step(plan, 0, &step) == VELO_ERR_STATE);
  options.budget = 209;
  EXPECT(velo_recompute_plan_solve(plan, &options) == VELO_ERR_ARGUMENT);
  options.budget = 210; /* 0 makes room for the third, and is made again */
  WORKS(velo_recompute_plan_solve(plan, &options));
  WORKS(velo_recompute_plan_get_stats(plan, &stats));
  EXPECT(stats.solved == 1 && stats.ops == 4 && stats.bytes_all == 310 && stats.bytes_peak == 210);
  EXPECT(stats.seconds == 4 && stats.seconds_more == 1);
  WORKS(velo_recompute_plan_get_step(plan, 0, &step));
  EXPECT(step.kind == VELO_RECOMPUTE_STEP_COMPUTE && step.op == 0);
  velo_recompute_plan_destroy(plan);
  EXPECT(velo_recompute_plan_get_stats(plan, &stats) == VELO_ERR_HANDLE);
}

static void recompute(void) {
  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
  velo_recompute_choice choice = VELO_RECOMPUTE_CHOICE_INIT;
  velo_recompute_layer layers[4];
  const velo_recompute_module modules[2] = {{0, -1, 1000, 100, 1.0}, {1, -1, 1000, 100, 0.5}};
  int32_t chosen[2] = {-1, -1};
  int64_t count = 0;
  rule.method = VELO_RECOMPUTE_METHOD_BLOCK;
  rule.layers = 8;
  rule.pipeline_size = 4;
  rule.pipeline_rank = 1;
  WORKS(velo_recompute_layers(&rule, layers, 4, &count));
  EXPECT(count == 2 && layers[0].layer == 2 && layers[0].kinds == VELO_RECOMPUTE_FULL);
  EXPECT(layers[1].kinds == VELO_RECOMPUTE_NONE && layers[1].in_flight == 3);
  EXPECT(velo_recompute_choose(&rule, &budget, modules, 2, chosen, &choice) == VELO_ERR_ARGUMENT);
  rule.method = VELO_RECOMPUTE_METHOD_ADAPTIVE;
  budget.bytes = 3300;
  WORKS(velo_recompute_choose(&rule, &budget, modules, 2, chosen, &choice));
  EXPECT(chosen[0] == 0 && chosen[1] == 1 && choice.bytes == 3300 && choice.seconds == 0.5);
  EXPECT(choice.bytes_least == 600 && choice.bytes_most == 6000 && choice.settled == 0);
  budget.fits = choice.budget;
  WORKS(velo_recompute_choose(&rule, &budget, modules, 2, chosen, &choice));
  EXPECT(choice.settled == 1);
}

static int32_t add_one(void* user, uint64_t offset, uint64_t bytes, void* const* slices) {
  uint64_t i = 0;
  *(uint64_t*)user += bytes;
  for (i = 0; i < bytes; ++i) ((unsigned char*)slices[0])[i] += (unsigned char)(offset + i < 4096);
  return 0;
}

static void swaps(velo_stream stream, velo_context context) {
  static unsigned char memory[5000];
  velo_swap swap = NULL;
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  velo_swap_object info = VELO_SWAP_OBJECT_INIT;
  velo_swap_stats stats = VELO_SWAP_STATS_INIT;
  velo_event event = NULL;
  uint64_t object = 0, updated = 0;
  memory[0] = 7;
  desc.tier = VELO_SWAP_DISK;
  desc.directories = "/tmp";
  desc.block = 4096;
  desc.minimum = 1;
  WORKS(velo_swap_create(context, &desc, &swap));
  WORKS(velo_event_create(context, &event));
  EXPECT(velo_swap_add(swap, memory, 0, VELO_SWAP_WARM, &object) == VELO_ERR_ARGUMENT);
  WORKS(velo_swap_add(swap, memory, sizeof memory, VELO_SWAP_WARM, &object));
  EXPECT(object == 1);
  WORKS(velo_swap_out(swap, object, stream, event));
  WORKS(velo_event_synchronize(event, -1));
  WORKS(velo_swap_wait(swap, object, stream));
  EXPECT(velo_swap_out(swap, object, stream, NULL) == VELO_ERR_STATE);
  WORKS(velo_swap_update(swap, &object, 1, 2, add_one, &updated));
  EXPECT(updated == sizeof memory);
  memory[0] = 0;
  WORKS(velo_swap_in(swap, object, NULL, stream, NULL));
  WORKS(velo_swap_wait(swap, object, stream));
  EXPECT(memory[0] == 8 && memory[4095] == 1 && memory[4096] == 0);
  WORKS(velo_swap_assign(swap, object, 3));
  WORKS(velo_swap_forward(swap, 3, stream));
  WORKS(velo_swap_wait(swap, object, stream));
  WORKS(velo_swap_get_object(swap, object, &info));
  EXPECT(info.state == VELO_SWAP_OUT && info.bytes == sizeof memory && info.layer == 3);
  EXPECT(info.bytes_stored == 8192 && info.memory == memory);
  WORKS(velo_swap_backward(swap, 3, stream));
  WORKS(velo_swap_get_stats(swap, &stats));
  EXPECT(stats.objects == 1 && stats.objects_out == 0 && stats.bytes_out == 3 * sizeof memory);
  WORKS(velo_swap_drop(swap, object, NULL));
  EXPECT(velo_swap_wait(swap, object, stream) == VELO_ERR_ARGUMENT);
  velo_event_destroy(event);
  velo_swap_destroy(swap);
  EXPECT(velo_swap_get_stats(swap, &stats) == VELO_ERR_HANDLE);
}

int main(int count, char** words) {
  velo_context context = NULL;
  velo_stream stream = NULL;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 2;
  desc.log = count_lines;
  desc.config_json = "{\"log\": \"error\"}";
  WORKS(velo_context_create(&desc, &context));
  WORKS(velo_context_stream(context, &stream));
  if (count != 2 || client_failures > 0) return 2;
  errors(context);
  tensors(context);
  order(context);
  client_operators(stream);
  later_structs(stream);
  packs(stream, context);
  pools(stream);
  plans();
  plan_steps();
  topologies();
  recompute();
  regions();
  recompute_plans();
  swaps(stream, context);
  client_by_name(stream, context, words[1]);
  client_behavior(stream, context);
  client_groups(stream, context);
  configuration(context);
  velo_context_destroy(context);
  velo_context_destroy(context); /* ignored and, with its context gone, logged nowhere */
  velo_context_destroy(NULL);
  printf("client: %d checks, %d failed\n", client_checks, client_failures);
  return client_failures == 0 ? 0 : 1;
}
