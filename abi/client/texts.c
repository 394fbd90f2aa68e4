/* This part: texts whose names programs read. The keys of every JSON text that the library writes,
 * the columns of a trace, the keys of a configuration and of a job to tune with what they take, the
 * names of a topology's families, the argument that a record of an error names. Keys may be added;
 * none of these goes. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "client.h"

static char text[1 << 23];

/* Every word of `keys` is a key of the text. */
static void has(const char* what, const char* keys) {
  char key[64];
  const char* end = keys;
  for (; *keys != 0; keys = *end == ' ' ? end + 1 : end) {
    end = strchr(keys, ' ') != NULL ? strchr(keys, ' ') : keys + strlen(keys);
    snprintf(key, sizeof key, "\"%.*s\":", (int)(end - keys), keys);
    client_report(strstr(text, key) != NULL, key, what, 0);
  }
}
#define TEXT text, sizeof text, NULL

static void of_groups(velo_stream stream, velo_context context) {
  velo_group group = NULL;
  velo_collective planned = NULL;
  velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
  velo_group_desc named = VELO_GROUP_DESC_INIT;
  float in[3] = {1, 2, 3}, out[3] = {0};
  const velo_tensor from = TENSOR(in, VELO_DTYPE_FLOAT, 32, 1, 3);
  const velo_tensor to = TENSOR(out, VELO_DTYPE_FLOAT, 32, 1, 3);
  named.label = "texts";
  WORKS(velo_group_create(context, &named, &group));
  WORKS(velo_group_all_reduce(stream, group, NULL, &from, &to));
  WORKS(velo_group_describe(group, TEXT));
  has("velo_group_describe",
      "group transport rank size timeout_ns called finished in_place fault ranks completed arrived "
      "left");
  EXPECT(strstr(text, "\"group\":\"texts\"") != NULL && strstr(text, "\"called\":1,") != NULL);
  EXPECT(strstr(text, "\"fault\":null") != NULL);
  WORKS(velo_group_history(group, TEXT));
  has("velo_group_history",
      "group rank size operations call sequence operation bytes state begun_ns ended_ns");
  EXPECT(strstr(text, "\"call\":1,") != NULL && strstr(text, "\"state\":\"done\"") != NULL);
  EXPECT(strstr(text, "\"bytes\":12,") != NULL);
  desc.kind = VELO_COLLECTIVE_ALL_GATHER;
  desc.in = &from;
  desc.out = &to;
  WORKS(velo_collective_create(group, &desc, &planned));
  WORKS(velo_collective_describe(planned, TEXT));
  has("velo_collective_describe", "operation bytes started");
  WORKS(velo_collective_explain(planned, TEXT));
  has("velo_collective_explain",
      "operation transport bytes ways name chosen reason steps step_bytes predicted_ns latency_ns "
      "bytes_per_second");
  velo_collective_destroy(planned);
  WORKS(velo_group_abort(group));
  WORKS(velo_group_describe(group, TEXT));
  has("a fault", "fault what operation sequence bytes ranks expected got cause");
  velo_group_destroy(group);
}

static void of_tunings(void) {
  static const char config[] =
      "{\"model\": {\"layers\": 4, \"hidden\": 64, \"heads\": 2, \"ffn_hidden\": 128, "
      "\"vocabulary\": 100}, \"training\": {\"global_batch\": 4, \"sequence\": 32}, "
      "\"accelerators\": 2, \"search\": {\"tp\": [1, 4], \"cp\": [1], \"pp\": [2], "
      "\"micro_batch\": "
      "[1], \"recompute\": [\"none\"], \"kind\": [\"zbv-greedy\"], \"split\": [\"even\"]}}";
  static const char columns[] =
      "tp,pp,vpp,dp,cp,ep,micro_batch,microbatches,recompute,schedule,split,code,reason,"
      "cp_algorithm,tp_slices,token_rearrange";
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  velo_tuning tuning = NULL;
  desc.config = config;
  desc.config_length = sizeof config - 1;
  WORKS(velo_tune(&desc, &tuning));
  WORKS(velo_tuning_write(tuning, VELO_TUNING_JSON, TEXT));
  has("velo_tuning_write",
      "model parameters accelerators memory_bytes candidates simulated plans rejected nearest "
      "formulas assumptions");
  has("a plan of a tuning",
      "layout tp pp vpp dp cp ep micro_batch microbatches recompute schedule split step_seconds "
      "pipeline_seconds gradient_seconds optimizer_seconds bubble tokens_per_second utilization "
      "order cap forward input weight fused latency shares stage_layers rank gradients optimizer "
      "activations workspace communication total");
  WORKS(velo_tuning_write(tuning, VELO_TUNING_REJECTED, TEXT));
  EXPECT(strncmp(text, columns, strlen(columns)) == 0 && strstr(text, ",heads,\"") != NULL);
  velo_tuning_destroy(tuning);
}

/* Every key that a job to tune may have: one that is not known is refused. */
static void of_jobs(void) {
  static const char config[] =
      "{\"model\": {\"name\": \"all\", \"layers\": 2, \"hidden\": 64, \"heads\": 2, \"kv_heads\": "
      "2, "
      "\"head_dim\": 32, \"ffn_hidden\": 128, \"vocabulary\": 100, \"gated\": true, "
      "\"tied_embeddings\": false, \"dropout\": false, \"flash_attention\": true, "
      "\"latent_attention\": {\"q_rank\": 16, \"kv_rank\": 16, \"rope_dim\": 8, \"value_dim\": "
      "32}, "
      "\"moe\": {\"experts\": 2, \"active\": 1, \"hidden\": 64, \"shared_hidden\": 64, "
      "\"first\": 1}}, "
      "\"training\": {\"global_batch\": 4, \"sequence\": 32, \"zero\": 1, "
      "\"sequence_parallel\": true, \"parameter_bytes\": 2, \"gradient_bytes\": 4, "
      "\"optimizer_bytes\": 12, \"fp8\": true, \"imbalance\": 1.5}, "
      "\"accelerators\": 2, "
      "\"search\": {\"tp\": [1], \"pp\": [1], \"vpp\": [1], \"dp\": [2], \"cp\": [1], \"ep\": [2], "
      "\"micro_batch\": [1], \"recompute\": [\"none\"], \"kind\": [\"1f1b\"], "
      "\"split\": [\"even\"], \"keep\": 3}}";
  static const char profile[] =
      "{\"name\": \"one\", \"memory_gib\": 80, \"memory_fraction\": 0.9, \"workspace_gib\": 1, "
      "\"bucket_mib\": 20, \"group_mib\": 8, \"peak_tflops\": 300, \"matmul_efficiency\": 0.5, "
      "\"fp8_tflops\": 600, \"attention_efficiency\": 0.4, \"memory_gb_per_s\": 1000, "
      "\"memory_efficiency\": 0.7, \"per_node\": 8, \"intra_gb_per_s\": 200, "
      "\"inter_gb_per_s\": 20, \"link_efficiency\": 0.7, \"intra_latency_us\": 4, "
      "\"inter_latency_us\": 9, \"layer_us\": 10, \"tp_overlap\": 0.1, \"cp_overlap\": 0.1, "
      "\"dp_overlap\": 0.1, \"fused_overlap\": 0.1}";
  velo_tune_desc desc = VELO_TUNE_DESC_INIT;
  velo_tuning_info info = VELO_TUNING_INFO_INIT;
  velo_tuning tuning = NULL;
  desc.config = config, desc.config_length = sizeof config - 1;
  desc.profile = profile, desc.profile_length = sizeof profile - 1;
  WORKS(velo_tune(&desc, &tuning));
  WORKS(velo_tuning_get_info(tuning, &info));
  EXPECT(info.plans == 1 && info.memory == (INT64_C(72) << 30));
  velo_tuning_destroy(tuning);
}

/* Every family that has a name, in a job that has them all. */
static void of_families(void) {
  static const int64_t levels[2] = {2, 4};
  velo_topology topology = NULL;
  velo_topology_desc axes = VELO_TOPOLOGY_DESC_INIT;
  axes.tp = 4, axes.cp = 8, axes.dp = 2, axes.pp = 2, axes.ep = 2, axes.gtp = 2, axes.egtp = 2;
  axes.instances = 2, axes.cp_levels = levels, axes.cp_level_count = 2;
  axes.cp_ulysses = 2, axes.cp_window = 2, axes.tp_x = 2, axes.hybrid = 1, axes.twins = 1;
  WORKS(velo_topology_create(&axes, &topology));
  WORKS(velo_topology_write(topology, NULL, VELO_TOPOLOGY_JSON, TEXT));
  has("the families of a topology",
      "tp pp dp cp dp-cp tp-cp tp-dp tp-dp-cp mp embedding position-embedding ep etp tp-ep "
      "tp-ep-pp edp gtp egtp intra-dp-cp inter-dp-cp intra-edp inter-edp optimizer-instance "
      "cp-level-1 cp-level-2 dp-cp-2 dp-cp-4 dp-cp-8 cp-ulysses cp-ring cp-ring-intra nd1-dim1 "
      "nd1-dim2 nd2-dim1 nd2-dim2 tp-x-cp tp-y-cp dp-cp-overlap cp-overlap pp-new-stream "
      "cp-ring-intra-overlap nd1-dim1-overlap nd1-dim2-overlap tp-y-cp-overlap");
  velo_topology_destroy(topology);
}

static void of_schedules(void) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  velo_schedule schedule = NULL;
  velo_timeline timeline = NULL;
  desc.kind = VELO_SCHEDULE_ZBV;
  desc.ranks = 2;
  desc.microbatches = 4;
  WORKS(velo_schedule_create(&desc, &schedule));
  WORKS(velo_schedule_write(schedule, VELO_SCHEDULE_JSON, TEXT));
  has("velo_schedule_write", "kind ranks stages microbatches splits chains placement actions");
  WORKS(velo_schedule_simulate(schedule, NULL, &timeline));
  WORKS(velo_timeline_write(timeline, VELO_TIMELINE_SUMMARY_JSON, TEXT));
  has("velo_timeline_write, summary",
      "makespan work beta sigma peak_activations critical_path rank index action begin length wait "
      "cause memory weights gradients optimizer activations messages offloaded total time");
  WORKS(velo_timeline_write(timeline, VELO_TIMELINE_TRACE, TEXT));
  has("velo_timeline_write, trace", "traceEvents name ph pid tid ts dur cat args stage microbatch");
  velo_timeline_destroy(timeline);
  velo_schedule_destroy(schedule);
}

static void of_memory(void) {
  static const char rows[] = "id,lower,upper,size\na,0,9,100\nb,3,6,100\n";
  velo_plan plan = NULL;
  velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  velo_swap_options swaps = VELO_SWAP_OPTIONS_INIT;
  velo_pool pool = NULL;
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  void* block = NULL;
  int64_t time = 0;
  WORKS(velo_plan_create(&desc, &plan));
  WORKS(velo_plan_read(plan, VELO_PLAN_CSV, rows, sizeof rows - 1));
  for (time = 0; time < 9; ++time) WORKS(velo_plan_add_work(plan, time, 1));
  WORKS(velo_plan_add_use(plan, 0, 0, VELO_ACCESS_WRITE));
  WORKS(velo_plan_add_use(plan, 1, 3, VELO_ACCESS_WRITE));
  WORKS(velo_plan_add_use(plan, 1, 5, VELO_ACCESS_READ));
  WORKS(velo_plan_add_use(plan, 0, 8, VELO_ACCESS_READ));
  swaps.budget = 150;
  swaps.least_bytes = 0;
  WORKS(velo_plan_solve_swaps(plan, &swaps));
  WORKS(velo_plan_write(plan, VELO_PLAN_SWAPS, TEXT));
  has("velo_plan_write, swaps",
      "policy budget bytes_live bytes_peak bytes_out bytes_in compute_seconds stall_seconds "
      "bound_seconds transfers action buffer after before begin end");
  velo_plan_destroy(plan);

  WORKS(velo_pool_create(NULL, &pool));
  WORKS(velo_pool_record(pool, 10));
  request.bytes = 100;
  WORKS(velo_pool_allocate(pool, &request, &block));
  WORKS(velo_pool_note(pool, block, "noted"));
  WORKS(velo_pool_snapshot(pool, VELO_SNAPSHOT_JSON, TEXT));
  has("velo_pool_snapshot",
      "segments device address total_size allocated_size active_size requested_size stream "
      "segment_type segment_pool_id is_expandable frames blocks size state device_traces action "
      "addr "
      "time_us category external_annotations allocator_settings velo events_dropped stats "
      "bytes_live bytes_peak bytes_reserved bytes_cached allocations frees refused purpose_live "
      "purpose_peak other parameter gradient optimizer activation workspace communication input");
  velo_pool_free(pool, block, 100, NULL);
  velo_pool_destroy(pool);
}

static void nothing(const float* x, float* y) {
  y[0] = x[0];
}

static void of_names(velo_context context) {
  const float x[2] = {1, 2};
  float y[2] = {0};
  const velo_tensor tx = TENSOR(x, VELO_DTYPE_FLOAT, 32, 1, 2);
  const velo_tensor ty = TENSOR(y, VELO_DTYPE_FLOAT, 32, 1, 2);
  const velo_named_value values[3] = {{"a", {VELO_VALUE_TENSOR, 0, {.tensor = &tx}}},
                                      {"b", {VELO_VALUE_TENSOR, 0, {.tensor = &tx}}},
                                      {"y", {VELO_VALUE_TENSOR, 0, {.tensor = &ty}}}};
  velo_kernel kernel = NULL;
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  void (*function)(const float*, float*) = nothing;
  WORKS(velo_describe(TEXT));
  has("velo_describe",
      "abi table handles callbacks enums structs functions operators errors name header since type "
      "destroy values value fields offset size params result thread dir prelude");
  WORKS(velo_op_describe("rms_norm", TEXT));
  has("velo_op_describe",
      "family header function args args_size prelude fields name kind dir dtypes doc ctype offset "
      "size alias optional default min initial aliases since thread source error_bound rows "
      "examples "
      "kernels isa");
  WORKS(velo_op_explain(context, "add", values, 3, TEXT));
  has("velo_op_explain",
      "name isa chosen reason cost flops flops_visible bytes_read bytes_written seconds");
  desc.op = "client_text", desc.signature = "v(pp)", desc.binding = "x.data, y.data";
  desc.tensors = "in x f32, out y f32";
  memcpy(&desc.function, &function, sizeof function);
  WORKS(velo_kernel_register(context, &desc, &kernel));
  WORKS(velo_kernel_list(context, TEXT));
  has("velo_kernel_list", "op library symbol signature binding tensors plugin");
  velo_kernel_destroy(kernel);
}

/* Every key: what it is at first, each word that it takes, that it takes nothing else. */
static const struct {
  const char *key, *initial, *values[5], *wrong;
} settings[] = {{"threads", "1", {NULL}, "-1"},
                {"isa", NULL, {"scalar"}, "sse"},
                {"level", "2", {"0", "1", "2"}, "3"},
                {"queue", "16384", {"1", "16777216"}, "0"},
                {"closures", "on", {"off", "on"}, "yes"},
                {"log", "off", {"debug", "info", "warn", "off", "error"}, "loud"},
                {"plugin_path", "", {"/nowhere"}, NULL},
                {"counters", "off", {"on", "recompute", "off"}, "yes"},
                {"overlap.mode", "auto", {"whole", "sliced", "auto"}, "1"},
                {"overlap.slices", "", {"4096x512x1024:4,*:2"}, "4:4"},
                {"limits.f32_gflops", "0", {"1.5"}, "-1"},
                {"limits.bf16_gflops", "0", {"1.5"}, "-1"},
                {"limits.read_gbytes", "0", {"1.5"}, "-1"},
                {"limits.copy_gbytes", "0", {"1.5"}, "-1"}};

static void of_configurations(void) {
  velo_context context = NULL;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  const char* origin = NULL;
  char got[64];
  size_t i = 0, value = 0;
  desc.config_json = "{\"threads\": 1}";
  WORKS(velo_context_create(&desc, &context));
  WORKS(velo_config_list(context, TEXT));
  has("velo_config_list", "key value origin doc");
  for (i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
    WORKS(velo_config_get(context, settings[i].key, got, sizeof got, NULL, &origin));
    if (settings[i].initial != NULL)
      client_report(strcmp(got, settings[i].initial) == 0, settings[i].key, "initial", 0);
    EXPECT(strcmp(origin, i == 0 ? "code" : "default") == 0);
    if (settings[i].wrong != NULL)
      REFUSES(velo_config_set(context, settings[i].key, settings[i].wrong), VELO_ERR_ARGUMENT);
    for (value = 0; value < 5 && settings[i].values[value] != NULL; ++value) {
      WORKS(velo_config_set(context, settings[i].key, settings[i].values[value]));
      WORKS(velo_config_get(context, settings[i].key, got, sizeof got, NULL, &origin));
      EXPECT(strcmp(got, settings[i].values[value]) == 0 && strcmp(origin, "code") == 0);
    }
  }
  velo_context_destroy(context);
}

/* The columns of RMM's log, one line a call. */
static void of_traces(void) {
  static const char header[] = "Thread,Time,Action,Pointer,Size,Stream\n";
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  velo_allocator below = VELO_ALLOCATOR_INIT, traced = VELO_ALLOCATOR_INIT;
  velo_adaptor trace = NULL;
  velo_pool pool = NULL;
  const velo_device cpu = {VELO_DEVICE_CPU, 0};
  char path[64], line[200] = "";
  unsigned long long thread = 0, time = 0, size = 0;
  void *block = NULL, *logged = NULL;
  FILE* file = NULL;
  snprintf(path, sizeof path, "/tmp/velo-client-%ld.csv", (long)getpid());
  WORKS(velo_pool_create(NULL, &pool));
  WORKS(velo_pool_allocator(pool, &below));
  desc.kind = VELO_ADAPTOR_TRACE, desc.upstream = &below, desc.path = path;
  WORKS(velo_adaptor_create(&desc, &trace));
  WORKS(velo_adaptor_allocator(trace, &traced));
  block = traced.allocate(traced.user, 100, 64, &cpu, NULL);
  traced.deallocate(traced.user, block, 100, &cpu, NULL);
  velo_adaptor_destroy(trace);
  file = fopen(path, "r");
  EXPECT(file != NULL);
  if (file != NULL) {
    EXPECT(fgets(line, sizeof line, file) != NULL && strcmp(line, header) == 0);
    EXPECT(fgets(line, sizeof line, file) != NULL &&
           sscanf(line, "%llu,%llu,allocate,%p,%llu,0", &thread, &time, &logged, &size) == 4);
    EXPECT(thread == (unsigned long long)getpid() && logged == block && size == 100 && time <= 1);
    EXPECT(fgets(line, sizeof line, file) != NULL && strstr(line, ",free,0x") != NULL);
    fclose(file);
  }
  unlink(path);
  velo_pool_destroy(pool);
}

/* A record names the argument as the caller spells it. */
static void of_records(velo_stream stream) {
  const float x[4] = {1, 1, -1, -1}, gamma[3] = {1, 2, 3};
  float y[4] = {0};
  const velo_tensor tx = TENSOR(x, VELO_DTYPE_FLOAT, 32, 2, 1, 4);
  const velo_tensor tg = TENSOR(gamma, VELO_DTYPE_FLOAT, 32, 1, 3);
  const velo_tensor ty = TENSOR(y, VELO_DTYPE_FLOAT, 32, 2, 1, 4);
  velo_error_info info = VELO_ERROR_INFO_INIT;
  velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
  args.x = &tx, args.y = &ty;
  REFUSES(velo_rms_norm(stream, &args), VELO_ERR_NULL);
  WORKS(velo_last_error(&info));
  EXPECT(strcmp(info.argument, "args.gamma") == 0 && strcmp(info.function, "velo_rms_norm") == 0);
  args.gamma = &tg;
  REFUSES(velo_rms_norm(stream, &args), VELO_ERR_SHAPE);
  WORKS(velo_last_error(&info));
  EXPECT(strcmp(info.argument, "args.gamma.shape") == 0);
  REFUSES(velo_rms_norm(stream, NULL), VELO_ERR_NULL);
  WORKS(velo_last_error(&info));
  EXPECT(strcmp(info.argument, "args") == 0);
}

void client_texts(velo_stream stream, velo_context context) {
  of_groups(stream, context);
  of_tunings();
  of_jobs();
  of_families();
  of_schedules();
  of_memory();
  of_names(context);
  of_configurations();
  of_traces();
  of_records(stream);
}
