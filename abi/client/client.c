/* A program of this release, kept as it was when the release ships: calls every function once and
 * knows the results. It is compiled against the headers of that day, linked to an empty library of
 * that day's names, and run with the library of today.
 *
 *   client PLUGIN.so
 *
 * This part: errors, tensors, contexts, configuration, streams, events, packs, topologies. memory.c
 * has pools, plans, recomputing and swaps, groups.c groups, buckets and a host's own collectives,
 * schedules.c schedules, timelines, mailboxes and executors, tunings.c the search for layouts,
 * by_name.c what goes by name, texts.c the keys and columns of texts, behavior.c what no type
 * shows; the calls of the operators follow from the examples of abi/spec. adapters.c, plugin.c
 * and unit.cpp are programs of their own. */
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

/* The value of a float16, which is finite. */
static double float16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

static double element(const velo_tensor* tensor, int64_t index) {
  const void* data = tensor->data;
  if (tensor->dtype.code == VELO_DTYPE_INT && tensor->dtype.bits == 64)
    return (double)((const int64_t*)data)[index];
  if (tensor->dtype.code == VELO_DTYPE_INT && tensor->dtype.bits == 8)
    return ((const int8_t*)data)[index];
  if (tensor->dtype.code == VELO_DTYPE_INT) return ((const int32_t*)data)[index];
  if (tensor->dtype.code == VELO_DTYPE_UINT) return ((const uint8_t*)data)[index];
  if (tensor->dtype.bits == 64) return ((const double*)data)[index];
  if (tensor->dtype.bits == 32) return ((const float*)data)[index];
  if (tensor->dtype.code == VELO_DTYPE_FLOAT) return float16(((const uint16_t*)data)[index]);
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

static void profile(velo_context context, velo_stream stream) {
  const float a[2] = {1, 2}, b[2] = {3, 4};
  float y[2] = {0};
  const velo_tensor ta = TENSOR(a, VELO_DTYPE_FLOAT, 32, 1, 2);
  const velo_tensor tb = TENSOR(b, VELO_DTYPE_FLOAT, 32, 1, 2);
  const velo_tensor ty = TENSOR(y, VELO_DTYPE_FLOAT, 32, 1, 2);
  velo_add_args sum = VELO_ADD_ARGS_INIT;
  velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
  velo_profiler_stats stats = VELO_PROFILER_STATS_INIT;
  velo_profiler_event event = VELO_PROFILER_EVENT_INIT;
  velo_profiler profiler = NULL;
  uint64_t needed = 0;
  desc.level = VELO_PROFILER_WORK, desc.events = 16;
  sum.a = &ta, sum.b = &tb, sum.y = &ty;
  WORKS(velo_profiler_create(context, &desc, &profiler));
  WORKS(velo_profiler_begin(profiler, "step 1"));
  WORKS(velo_add(stream, &sum));
  WORKS(velo_profiler_end(profiler));
  EXPECT(velo_profiler_get_event(profiler, 0, &event) == VELO_ERR_STATE);
  WORKS(velo_profiler_stop(profiler));
  WORKS(velo_profiler_get_stats(profiler, &stats));
  EXPECT(stats.events == 2 && stats.dropped == 0 && stats.begin_ns < stats.end_ns);
  WORKS(velo_profiler_get_event(profiler, 0, &event));
  EXPECT(event.kind == VELO_PROFILER_OPERATOR && strcmp(event.name, "add") == 0);
  EXPECT(event.bytes == 24 && event.begin_ns <= event.end_ns);
  WORKS(velo_profiler_get_event(profiler, 1, &event));
  EXPECT(event.kind == VELO_PROFILER_RANGE && strcmp(event.name, "step 1") == 0);
  WORKS(velo_profiler_write(profiler, VELO_PROFILER_TRACE, NULL, 0, &needed));
  EXPECT(needed > 200);
  EXPECT(velo_profiler_save(profiler, "") == VELO_ERR_ARGUMENT);
  velo_profiler_destroy(profiler);
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
  CLOSE(y[1], 2);
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
  CLOSE(c[0], 4), CLOSE(c[3], 11);
  velo_pack_destroy(pack);
  EXPECT(velo_matmul(stream, &product) == VELO_ERR_HANDLE);
}

/* A pack of int4, [n, k] with two of them in each byte: 1, 2; -1, 3. */
static void packs_of_integers(velo_stream stream, velo_context context) {
  const float x[2] = {10, 1}, scale[2] = {1, 0.5f};
  const uint8_t pairs[2] = {0x21, 0x3f};
  float y[2] = {0};
  const velo_tensor tx = TENSOR(x, VELO_DTYPE_FLOAT, 32, 2, 1, 2);
  const velo_tensor tweight = TENSOR(pairs, VELO_DTYPE_UINT, 8, 2, 2, 1);
  const velo_tensor tscale = TENSOR(scale, VELO_DTYPE_FLOAT, 32, 1, 2);
  const velo_tensor ty = TENSOR(y, VELO_DTYPE_FLOAT, 32, 2, 1, 2);
  const velo_dtype int4 = {VELO_DTYPE_INT, 4, 1};
  velo_pack pack = NULL;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  velo_weight_quant_matmul_args product = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
  desc.k = desc.n = 2, desc.transpose = 1, desc.dtype = int4;
  EXPECT(velo_pack_create(context, &desc, &pack) == VELO_ERR_DTYPE);
  desc.weight_only = 1;
  WORKS(velo_pack_create(context, &desc, &pack));
  WORKS(velo_pack_update(stream, pack, &tweight));
  product.x = &tx, product.packed = pack, product.scale = &tscale, product.y = &ty;
  product.row_invariant = 1;
  WORKS(velo_weight_quant_matmul(stream, &product));
  CLOSE(y[0], 12), CLOSE(y[1], -3.5);
  velo_pack_destroy(pack);
}

static void topologies(void) {
  velo_topology topology = NULL;
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  velo_topology_info info = VELO_TOPOLOGY_INFO_INIT;
  velo_topology_family family = VELO_TOPOLOGY_FAMILY_INIT;
  velo_topology_place place = VELO_TOPOLOGY_PLACE_INIT;
  int32_t ranks[4] = {-1, -1, -1, -1};
  int64_t count = 0;
  const char* name = NULL;
  char out[64];
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
  EXPECT(family.groups == 3 && family.size == 2 && family.twin_of == NULL);
  WORKS(velo_topology_get_place(topology, "ep", 3, &place));
  EXPECT(place.group == 1 && place.position == 1);
  WORKS(velo_topology_get_group(topology, "ep", 1, ranks, 2, &count));
  EXPECT(count == 3 && ranks[0] == 1 && ranks[1] == 3 && ranks[2] == -1);
  /* tp, cp, ep, dp, pp: the first next to each other, unless the order says something else. */
  WORKS(velo_topology_get_group(topology, "dp", 1, ranks, 4, &count));
  EXPECT(count == 3 && ranks[0] == 1 && ranks[1] == 3 && ranks[2] == 5);
  WORKS(velo_topology_write(topology, "tp-pp", VELO_TOPOLOGY_JSON, out, sizeof out, NULL));
  EXPECT(strcmp(out, "[[0, 1], [2, 3], [4, 5]]") == 0);
  velo_topology_destroy(topology);
  desc.ep = 1;
  desc.cp = 2;
  desc.dp = 2;
  desc.pp = 2;
  WORKS(velo_topology_create(&desc, &topology));
  WORKS(velo_topology_write(topology, "tp", VELO_TOPOLOGY_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "[[0, 1], ", 9) == 0);
  WORKS(velo_topology_write(topology, "cp", VELO_TOPOLOGY_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "[[0, 2], ", 9) == 0);
  WORKS(velo_topology_write(topology, "dp", VELO_TOPOLOGY_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "[[0, 4], ", 9) == 0);
  WORKS(velo_topology_write(topology, "pp", VELO_TOPOLOGY_JSON, out, sizeof out, NULL));
  EXPECT(strncmp(out, "[[0, 8], ", 9) == 0);
  velo_topology_destroy(topology);
  EXPECT(velo_topology_get_info(topology, &info) == VELO_ERR_HANDLE);
}

static void shardings(void) {
  velo_topology topology = NULL;
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  velo_sharding sharding = NULL;
  velo_sharding_parameter parameter = VELO_SHARDING_PARAMETER_INIT;
  velo_sharding_info info = VELO_SHARDING_INFO_INIT;
  velo_sharding_part part = VELO_SHARDING_PART_INIT;
  velo_sharding_piece piece = VELO_SHARDING_PIECE_INIT;
  velo_sharding_move moves[2];
  /* 7 key heads of 2 elements, each of 4 query heads: rank 0 has heads 0 to 3, rank 1 3 to 6 */
  const velo_sharding_block heads = {14, 28, 4};
  velo_sharding_cut cut = {"tp", 0, &heads, 1, NULL, 0};
  const int64_t shape[] = {14, 3};
  int64_t index = -1, count = 0;
  int32_t ranks[2] = {-1, -1};
  const char* name = NULL;
  char out[160];
  desc.tp = 2;
  WORKS(velo_topology_create(&desc, &topology));
  WORKS(velo_sharding_create(topology, &sharding));
  velo_topology_destroy(topology);
  parameter.name = "k";
  parameter.ndim = 2;
  parameter.shape = shape;
  parameter.cuts = &cut;
  parameter.cut_count = 1;
  cut.axis = "dp";
  EXPECT(velo_sharding_add(sharding, &parameter, &index) == VELO_ERR_ARGUMENT && index == -1);
  cut.axis = "tp";
  WORKS(velo_sharding_add(sharding, &parameter, &index));
  EXPECT(index == 0);
  WORKS(velo_sharding_get_info(sharding, &info));
  EXPECT(info.ranks == 2 && info.parameters == 1);
  WORKS(velo_sharding_parameter_name(sharding, 0, &name));
  EXPECT(strcmp(name, "k") == 0);
  WORKS(velo_sharding_get_part(sharding, 0, 1, &part));
  EXPECT(part.ndim == 2 && part.shape[0] == 8 && part.shape[1] == 3 && part.elements == 24);
  EXPECT(part.pieces == 2 && part.sums == 1 && part.copies == 0);
  EXPECT(part.range_begin == 0 && part.range_end == 24);
  WORKS(velo_sharding_get_piece(sharding, 0, 1, 1, &piece));
  EXPECT(piece.begin[0] == 8 && piece.end[0] == 14 && piece.at[0] == 2 && piece.copies == 1);
  WORKS(velo_sharding_get_sum(sharding, 0, 1, 0, &name));
  EXPECT(strcmp(name, "copies") == 0);
  WORKS(velo_sharding_get_holders(sharding, 0, 1, 0, ranks, 2, &count));
  EXPECT(count == 2 && ranks[0] == 0 && ranks[1] == 1);
  WORKS(velo_sharding_check(sharding));
  WORKS(velo_sharding_transfer(sharding, sharding, 0, 1, VELO_SHARDING_PARTS, moves, 2, &count));
  EXPECT(count == 2 && moves[0].source == 1 && moves[1].begin[0] == 8 && moves[1].at[0] == 2);
  WORKS(velo_sharding_write(sharding, 0, VELO_SHARDING_JSON, out, sizeof out, NULL));
  EXPECT(strstr(out, "{\"part\": [[0, 8], [0, 3]], \"sum\": [\"copies\"]") != NULL);
  velo_sharding_destroy(sharding);
  EXPECT(velo_sharding_check(sharding) == VELO_ERR_HANDLE);
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
  profile(context, stream);
  client_operators(stream);
  client_lists(stream);
  later_structs(stream);
  packs(stream, context);
  packs_of_integers(stream, context);
  client_memory(stream, context);
  topologies();
  shardings();
  client_by_name(stream, context, words[1]);
  client_behavior(stream, context);
  client_groups(stream, context);
  client_schedules(stream, context);
  client_tunings();
  client_texts(stream, context);
  configuration(context);
  velo_context_destroy(context);
  velo_context_destroy(context); /* ignored and, with its context gone, logged nowhere */
  velo_context_destroy(NULL);
  printf("client: %d checks, %d failed\n", client_checks, client_failures);
  return client_failures == 0 ? 0 : 1;
}
