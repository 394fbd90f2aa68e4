/* This part: pools and adaptors, plans, what is computed again and what is swapped. */
#include <stdint.h>

#include "client.h"

/* The last call of a callback adaptor, and whether a failed allocation is tried again. */
static struct {
  void* user;
  velo_memory_event event;
  void* memory;
  uint64_t bytes;
  void* stream;
  int32_t calls, again;
} last_event;

static int32_t record_event(void* user, velo_memory_event event, void* memory, uint64_t bytes,
                            void* stream) {
  last_event.user = user, last_event.event = event, last_event.memory = memory;
  last_event.bytes = bytes, last_event.stream = stream;
  ++last_event.calls;
  return event == VELO_MEMORY_FAILED && last_event.again-- > 0;
}

static int last_event_is(velo_memory_event event, void* memory, uint64_t bytes, void* stream) {
  return last_event.user == &last_event && last_event.event == event &&
         last_event.memory == memory && last_event.bytes == bytes && last_event.stream == stream;
}

static void adaptors(const velo_allocator* below, velo_stream stream) {
  velo_adaptor limit = NULL, callback = NULL;
  velo_allocator limited = VELO_ALLOCATOR_INIT, observed = VELO_ALLOCATOR_INIT;
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  velo_adaptor_stats stats = VELO_ADAPTOR_STATS_INIT;
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  void* block = NULL;
  desc.kind = VELO_ADAPTOR_LIMIT, desc.upstream = below, desc.limit = 100;
  WORKS(velo_adaptor_create(&desc, &limit));
  WORKS(velo_adaptor_allocator(limit, &limited));
  desc.kind = VELO_ADAPTOR_CALLBACK, desc.upstream = &limited, desc.event = record_event;
  desc.event_user = &last_event;
  WORKS(velo_adaptor_create(&desc, &callback));
  WORKS(velo_adaptor_allocator(callback, &observed));
  block = observed.allocate(observed.user, 100, 64, &cpu, stream);
  EXPECT(block != NULL && last_event_is(VELO_MEMORY_ALLOCATED, block, 100, stream));
  last_event.again = 1;
  EXPECT(observed.allocate(observed.user, 101, 64, &cpu, NULL) == NULL);
  EXPECT(last_event_is(VELO_MEMORY_FAILED, NULL, 101, NULL) && last_event.calls == 3);
  WORKS(velo_adaptor_get_stats(limit, &stats));
  EXPECT(stats.bytes_live == 100 && stats.allocations == 1 && stats.failures == 2);
  observed.deallocate(observed.user, block, 100, &cpu, stream);
  EXPECT(last_event_is(VELO_MEMORY_FREED, block, 100, stream) && last_event.calls == 4);
  WORKS(velo_adaptor_flush(callback));
  velo_adaptor_destroy(callback);
  EXPECT(velo_adaptor_flush(callback) == VELO_ERR_HANDLE);
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

/* Notes what was asked for, and says once that there is more memory now. */
static int32_t press(void* user, uint64_t bytes) {
  uint64_t* asked = user;
  *asked += bytes;
  return *asked == bytes;
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
  uint64_t offset = 0, released = 0, asked = 0;
  desc.kind = VELO_POOL_SHARED, desc.checked = 1, desc.limit = 1 << 26;
  desc.pressure = press, desc.pressure_user = &asked;
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
  WORKS(velo_pool_free(pool, NULL, 0, NULL)); /* as free does */
  WORKS(velo_pool_free(pool, NULL, 1000, stream));
  WORKS(velo_pool_set_limit(pool, 1 << 20));
  request.bytes = 1 << 21;
  EXPECT(velo_pool_allocate(pool, &request, &other) == VELO_ERR_MEMORY && other == block);
  EXPECT(asked == UINT64_C(2) << 21); /* a second time, since the first answer was 1 */
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
  adaptors(&allocator, stream);
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
  EXPECT(stats.seconds == 4 && stats.seconds_more == 1 && stats.optimal == 1);
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

/* Two buffers of which a page holds one: the first is away while the second is used. */
static void planned_swaps(velo_stream stream, velo_context context) {
  static unsigned char arena[4096];
  velo_plan plan = NULL;
  velo_swap swap = NULL;
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  velo_swap_options room = VELO_SWAP_OPTIONS_INIT;
  velo_plan_swap_stats stats = VELO_PLAN_SWAP_STATS_INIT;
  velo_plan_swap transfer = VELO_PLAN_SWAP_INIT;
  velo_plan_stay stay = VELO_PLAN_STAY_INIT;
  void* memory = NULL;
  int64_t time = 0, stage = 0;
  WORKS(velo_plan_create(&desc, &plan));
  for (stage = 0; stage < 3; ++stage) WORKS(velo_plan_add_work(plan, 10 * stage + 9, 1));
  WORKS(velo_plan_add(plan, 2, 28, sizeof arena, NULL));
  WORKS(velo_plan_add(plan, 12, 18, sizeof arena, NULL));
  WORKS(velo_plan_add_use(plan, 0, 25, VELO_ACCESS_READ));
  room.budget = sizeof arena;
  room.least_bytes = 0;
  EXPECT(velo_plan_place_swaps(plan, NULL) == VELO_ERR_STATE);
  WORKS(velo_plan_solve_swaps(plan, &room));
  WORKS(velo_plan_place_swaps(plan, NULL));
  WORKS(velo_plan_get_swap_stats(plan, &stats));
  EXPECT(stats.stages == 3 && stats.stays == 3 && stats.placed == 1 && stats.transfers == 2);
  EXPECT(stats.bytes_planned == sizeof arena && stats.bytes_peak == sizeof arena);
  WORKS(velo_plan_get_swap(plan, 1, &transfer));
  EXPECT(transfer.action == VELO_SWAP_ACTION_IN && transfer.stay == 2);
  WORKS(velo_plan_get_stay(plan, 2, &stay));
  EXPECT(stay.buffer == 0 && stay.bytes == sizeof arena && stay.offset == 0);
  EXPECT(stay.begin == 4 && stay.end == 5);
  WORKS(velo_swap_create(context, NULL, &swap));
  EXPECT(velo_swap_begin_stage(swap, &time) == VELO_ERR_STATE);
  WORKS(velo_swap_begin_step(swap, plan, arena, stream));
  for (stage = 0; stage < 3; ++stage) {
    WORKS(velo_swap_begin_stage(swap, &time));
    EXPECT(time == 10 * stage + 9);
    EXPECT(velo_swap_get_buffer(swap, stage != 1, &memory) == VELO_ERR_ARGUMENT);
    WORKS(velo_swap_get_buffer(swap, stage == 1, &memory));
    EXPECT(memory == arena);
    if (stage == 2) EXPECT(arena[7] == 1);
    arena[7] = (unsigned char)(stage + 1);
  }
  EXPECT(velo_swap_begin_stage(swap, &time) == VELO_ERR_STATE);
  WORKS(velo_swap_end_step(swap));
  EXPECT(velo_swap_end_step(swap) == VELO_ERR_STATE);
  velo_swap_destroy(swap);
  velo_plan_destroy(plan);
}

void client_memory(velo_stream stream, velo_context context) {
  pools(stream);
  plans();
  plan_steps();
  recompute();
  regions();
  recompute_plans();
  swaps(stream, context);
  planned_swaps(stream, context);
}
