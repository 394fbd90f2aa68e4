// The rows, written by hand: a call that does what its function is for.
#include "tests/faults/every_entry.hpp"

#include <cstddef>
#include <iterator>
#include <set>
#include <stdexcept>

#include "core/signature.hpp"

namespace velo::testing {
namespace {

using core::direction;
using core::function_info;
using core::parameter_info;
using core::thread_class;
using core::value_type;
#include "abi/generated/functions.inc"

// Set-up that fails would make a row prove nothing: it ends the test.
void must(velo_status status) {
  if (status != VELO_OK) throw std::runtime_error("a row's preparation failed");
}

velo_status fill(std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = 1;
  return VELO_OK;
}

velo_kernel_desc kernel_desc() {
  velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
  desc.op = "a_foreign_kernel_with_a_long_name";
  desc.signature = "s(lp)";
  desc.binding = "y.numel, y.data";
  desc.tensors = "out y f32";
  desc.function = reinterpret_cast<void*>(&fill);
  return desc;
}

float numbers[16] = {};
const std::int64_t square[] = {4, 4};
const velo_tensor matrix = {
    numbers, {VELO_DEVICE_CPU, 0}, 2, {VELO_DTYPE_FLOAT, 32, 1}, square, nullptr, 0};
char text[1 << 20];

velo_named_value named_matrix(const char* name) {
  velo_named_value v{};
  v.name = name;
  v.value.kind = VELO_VALUE_TENSOR;
  v.value.as.tensor = &matrix;
  return v;
}

void nothing(world&) {}
void open(world& w) {
  w.open();
}
void close(world& w) {
  w.close();
}
void open_with_queue(world& w) {
  w.open();
  must(velo_stream_create(w.context, &w.queue));
}
void open_with_event(world& w) {
  open_with_queue(w);
  must(velo_event_create(w.context, &w.event));
  must(velo_event_record(w.event, w.queue));
  must(velo_event_synchronize(w.event, -1));
}
void open_with_pack(world& w) {
  w.open();
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = desc.n = 4;
  must(velo_pack_create(w.context, &desc, &w.pack));
}
void open_with_kernel(world& w) {
  w.open();
  const velo_kernel_desc desc = kernel_desc();
  must(velo_kernel_register(w.context, &desc, &w.kernel));
}
velo_status create_closure(world& w) {
  void* function = nullptr;
  return velo_closure_create(w.now, "add", "a, b, y", &function, &w.closure);
}
void open_with_closure(world& w) {
  w.open();
  must(create_closure(w));
}
void open_with_tensor(world& w) {
  w.open();
  const velo_dtype dtype = {VELO_DTYPE_FLOAT, 32, 1};
  must(velo_tensor_create(w.context, &dtype, 2, square, &w.managed));
}
velo_status allocate(world& w) {
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = 1 << 20;
  return velo_pool_allocate(w.pool, &request, &w.memory);
}
void open_pool(world& w) {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = VELO_POOL_SHARED;
  must(velo_pool_create(&desc, &w.pool));
}
void open_with_block(world& w) {
  open_with_queue(w);
  open_pool(w);
  must(allocate(w));
}
void open_recorded(world& w) {
  open_with_block(w);
  must(velo_pool_record(w.pool, 20));
  must(velo_pool_note(w.pool, nullptr, "step 1"));
}
void close_pool(world& w) {
  if (w.memory != nullptr) velo_pool_free(w.pool, w.memory, 1 << 20, nullptr);
  w.memory = nullptr;
  velo_pool_destroy(w.pool);
  w.pool = nullptr;
  w.close();
}
velo_status create_adaptor(world& w) {
  velo_allocator below = VELO_ALLOCATOR_INIT;
  must(velo_pool_allocator(w.pool, &below));
  velo_adaptor_desc desc = VELO_ADAPTOR_DESC_INIT;
  desc.upstream = &below;
  return velo_adaptor_create(&desc, &w.adaptor);
}
void open_with_adaptor(world& w) {
  open_pool(w);
  must(create_adaptor(w));
}
void close_adaptor(world& w) {
  velo_adaptor_destroy(w.adaptor);
  w.adaptor = nullptr;
  close_pool(w);
}
velo_status read_plan(world& w) {
  static const char rows[] = "id,lower,upper,size\na,0,4,640\nb,2,6,128\nc,5,9,320\nd,3,7,64\n";
  return velo_plan_read(w.plan, VELO_PLAN_CSV, rows, sizeof rows - 1);
}
void open_plan(world& w) {
  must(velo_plan_create(nullptr, &w.plan));
}
void open_filled_plan(world& w) {
  open_plan(w);
  must(read_plan(w));
}
void open_solved_plan(world& w) {
  open_filled_plan(w);
  must(velo_plan_solve(w.plan, nullptr));
}
velo_status choose_modules(world&) {
  static const velo_recompute_module modules[] = {
      {0, -1, 900, 90, 3}, {0, 0, 500, 9, 2}, {0, 0, 300, 9, 1}, {1, -1, 700, 9, 3}};
  velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
  velo_recompute_budget budget = VELO_RECOMPUTE_BUDGET_INIT;
  velo_recompute_choice choice = VELO_RECOMPUTE_CHOICE_INIT;
  std::int32_t chosen[4] = {};
  rule.method = VELO_RECOMPUTE_METHOD_ADAPTIVE;
  rule.layers = 2;
  budget.bytes = 1200;
  return velo_recompute_choose(&rule, &budget, modules, 4, chosen, &choice);
}
velo_status restored(void*, const velo_recompute_call*) {
  return VELO_OK;
}
velo_status create_recompute(world& w) {
  velo_allocator below = VELO_ALLOCATOR_INIT;
  must(velo_pool_allocator(w.pool, &below));
  velo_recompute_desc desc = VELO_RECOMPUTE_DESC_INIT;
  desc.allocator = &below;
  return velo_recompute_create(&desc, &w.recompute);
}
void open_recompute(world& w) {
  open_pool(w);
  must(create_recompute(w));
}
velo_status add_region(world& w) {
  static const std::uint64_t bytes[] = {64, 1 << 20};
  const velo_recompute_input inputs[] = {{numbers, -1, 0}, {nullptr, w.region, 0}};
  velo_recompute_region region = VELO_RECOMPUTE_REGION_INIT;
  region.name = "a_region_with_a_long_name";
  region.restore = &restored;
  region.inputs = inputs;
  region.input_count = w.region >= 0 ? 2 : 1;
  region.output_bytes = bytes;
  region.output_count = 2;
  return velo_recompute_add(w.recompute, &region, nullptr, &w.region);
}
void open_with_region(world& w) {
  open_recompute(w);
  w.region = -1;
  must(add_region(w));
  must(add_region(w));
}
void open_with_released(world& w) {
  open_with_region(w);
  must(velo_recompute_release(w.recompute, w.region - 1, nullptr));
  must(velo_recompute_release(w.recompute, w.region, nullptr));
}
void close_recompute(world& w) {
  velo_recompute_destroy(w.recompute);
  w.recompute = nullptr;
  w.region = -1;
  close_pool(w);
}
velo_status add_op(world& w, std::int64_t before) {
  static const std::int64_t inputs[] = {0, 1, 2};
  velo_recompute_op op = VELO_RECOMPUTE_OP_INIT;
  op.seconds = 1;
  op.bytes = 10;
  op.inputs = inputs;
  op.input_count = before;
  return velo_recompute_plan_add(w.recompute_plan, &op, nullptr);
}
velo_status solve_recompute(world& w) {
  velo_recompute_plan_options options = VELO_RECOMPUTE_PLAN_OPTIONS_INIT;
  options.budget = 40;
  return velo_recompute_plan_solve(w.recompute_plan, &options);
}
void open_recompute_plan(world& w) {
  must(velo_recompute_plan_create(&w.recompute_plan));
  for (int i = 0; i < 3; ++i) must(add_op(w, i));
}
void open_solved_recompute(world& w) {
  open_recompute_plan(w);
  must(solve_recompute(w));
}
void close_recompute_plan(world& w) {
  velo_recompute_plan_destroy(w.recompute_plan);
  w.recompute_plan = nullptr;
}
void close_plan(world& w) {
  velo_plan_destroy(w.plan);
  w.plan = nullptr;
}
// A swap on disk of objects in a pool of its own; pages of 4 KiB, three of them an object.
constexpr std::uint64_t object_bytes = 10000;
velo_status create_swap(world& w) {
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  desc.tier = VELO_SWAP_DISK;
  desc.directories = "/tmp";
  desc.memory = w.pool;
  desc.block = 4096;
  return velo_swap_create(w.context, &desc, &w.swap);
}
velo_status add_object(world& w) {
  return velo_swap_add(w.swap, nullptr, object_bytes, VELO_SWAP_COLD, &w.object);
}
void open_for_swap(world& w) {
  w.open();
  must(velo_pool_create(nullptr, &w.pool));
}
void open_swap(world& w) {
  open_for_swap(w);
  must(create_swap(w));
}
void open_with_object(world& w) {
  open_swap(w);
  must(add_object(w));
  must(velo_swap_assign(w.swap, w.object, 1));
  velo_swap_object info = VELO_SWAP_OBJECT_INIT;
  must(velo_swap_get_object(w.swap, w.object, &info));
  for (std::uint64_t i = 0; i < object_bytes; ++i) static_cast<char*>(info.memory)[i] = 1;
}
velo_status await_object(world& w, velo_status queued) {
  return queued != VELO_OK ? queued : velo_swap_wait(w.swap, w.object, w.now);
}
velo_status send_object(world& w) {
  return await_object(w, velo_swap_out(w.swap, w.object, w.now, nullptr));
}
void open_with_object_out(world& w) {
  open_with_object(w);
  must(send_object(w));
}
void close_swap(world& w) {
  velo_swap_destroy(w.swap);
  w.swap = nullptr;
  close_pool(w);
}
void release_and_close(world& w) {
  velo_tensor_release(w.managed);
  w.managed = nullptr;
  w.close();
}

velo_status gone(velo_status of_a_call) {
  return of_a_call == VELO_ERR_HANDLE ? VELO_OK : VELO_ERR_INTERNAL;
}

velo_status run_queued(world& w) {
  const velo_status queued = w.example->run(w.queue);
  const velo_status done = velo_stream_synchronize(w.queue);
  velo_stream_clear(w.queue);
  return queued != VELO_OK ? queued : done;
}
void open_with_values(world& w) {
  w.open();
  w.values = w.example->values(true);
}
velo_status run_by_name(world& w) {
  return velo_op_call(w.now, w.example->spec().name, w.values.data(),
                      static_cast<std::int64_t>(w.values.size()));
}
velo_status infer(world& w) {
  const velo_named_value inputs[] = {named_matrix("a"), named_matrix("b")};
  velo_shape shapes[1] = {};
  shapes[0].struct_size = sizeof shapes[0];
  std::int64_t outputs = 0;
  return velo_op_infer(w.context, "add", inputs, 2, shapes, 1, &outputs);
}
velo_status explain(world& w) {
  const velo_named_value inputs[] = {named_matrix("a"), named_matrix("b")};
  return velo_op_explain(w.context, "add", inputs, 2, text, sizeof text, nullptr);
}
velo_status invoke(world&) {
  std::int64_t count = 0;
  velo_value to{};
  to.kind = VELO_VALUE_POINTER;
  to.as.p = &count;
  velo_value result{};
  return velo_invoke("velo_op_count", &to, 1, &result);
}
velo_status create_context(world& w) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 2;
  desc.allocator = w.allocator();
  desc.config_json =
      R"({"level": 1, "kernel.rms_norm": "reference", "log": "off", "closures": true})";
  return velo_context_create(&desc, &w.context);
}

const entry functions_by_hand[] = {
    {"velo_last_error", nothing,
     [](world&) {
       velo_error_info info = VELO_ERROR_INFO_INIT;
       return velo_last_error(&info);
     },
     nothing},
    {"velo_error_text", nothing, [](world&) { return velo_error_text(text, sizeof text, nullptr); },
     nothing},
    {"velo_status_describe", nothing,
     [](world&) { return velo_status_describe(VELO_ERR_NULL, nullptr, nullptr); }, nothing},
    {"velo_tensor_create", open,
     [](world& w) {
       const velo_dtype dtype = {VELO_DTYPE_FLOAT, 32, 1};
       return velo_tensor_create(w.context, &dtype, 2, square, &w.managed);
     },
     release_and_close},
    {"velo_tensor_import", open_with_tensor,
     [](world& w) {
       velo_tensor view{};
       return velo_tensor_import(w.context, w.managed, &view);
     },
     release_and_close},
    {"velo_tensor_release", open_with_tensor,
     [](world& w) -> velo_status {
       velo_tensor_release(w.managed);
       w.managed = nullptr;
       return VELO_OK;
     },
     close},
    {"velo_tensor_extent", nothing,
     [](world&) {
       std::uint64_t bytes = 0;
       return velo_tensor_extent(&matrix, &bytes);
     },
     nothing},
    {"velo_context_create", nothing, create_context, close},
    {"velo_context_destroy", open_with_event,
     [](world& w) {
       velo_context_destroy(w.context);
       velo_stream stream = nullptr;
       return gone(velo_context_stream(w.context, &stream));
     },
     nothing},
    {"velo_context_stream", open,
     [](world& w) {
       velo_stream stream = nullptr;
       return velo_context_stream(w.context, &stream);
     },
     close},
    {"velo_config_set", open,
     [](world& w) { return velo_config_set(w.context, "kernel.rms_norm", "reference"); }, close},
    {"velo_config_get", open,
     [](world& w) {
       return velo_config_get(w.context, "isa", text, sizeof text, nullptr, nullptr);
     },
     close},
    {"velo_config_list", open,
     [](world& w) { return velo_config_list(w.context, text, sizeof text, nullptr); }, close},
    {"velo_context_get_stats", open,
     [](world& w) {
       velo_context_stats stats{};
       stats.struct_size = sizeof stats;
       return velo_context_get_stats(w.context, &stats);
     },
     close},
    {"velo_stream_create", open, [](world& w) { return velo_stream_create(w.context, &w.queue); },
     close},
    {"velo_stream_destroy", open_with_queue,
     [](world& w) {
       velo_stream_destroy(w.queue);
       return gone(velo_stream_synchronize(w.queue));
     },
     close},
    {"velo_stream_synchronize", open_with_queue,
     [](world& w) { return velo_stream_synchronize(w.queue); }, close},
    {"velo_stream_query", open_with_queue,
     [](world& w) {
       std::int32_t done = 0;
       return velo_stream_query(w.queue, &done);
     },
     close},
    {"velo_stream_clear", open_with_queue, [](world& w) { return velo_stream_clear(w.queue); },
     close},
    {"velo_stream_wait", open_with_event,
     [](world& w) { return velo_stream_wait(w.queue, w.event); }, close},
    {"velo_event_create", open, [](world& w) { return velo_event_create(w.context, &w.event); },
     close},
    {"velo_event_destroy", open_with_event,
     [](world& w) {
       velo_event_destroy(w.event);
       std::int32_t done = 0;
       return gone(velo_event_query(w.event, &done));
     },
     close},
    {"velo_event_record", open_with_event,
     [](world& w) { return velo_event_record(w.event, w.queue); }, close},
    {"velo_event_synchronize", open_with_event,
     [](world& w) { return velo_event_synchronize(w.event, -1); }, close},
    {"velo_event_query", open_with_event,
     [](world& w) {
       std::int32_t done = 0;
       return velo_event_query(w.event, &done);
     },
     close},
    {"velo_pack_create", open,
     [](world& w) {
       velo_pack_desc desc = VELO_PACK_DESC_INIT;
       desc.k = desc.n = 4;
       return velo_pack_create(w.context, &desc, &w.pack);
     },
     close},
    {"velo_pack_destroy", open_with_pack,
     [](world& w) {
       velo_pack_destroy(w.pack);
       return gone(velo_pack_update(w.now, w.pack, &matrix));
     },
     close},
    {"velo_pack_update", open_with_pack,
     [](world& w) { return velo_pack_update(w.now, w.pack, &matrix); }, close},
    {"velo_get_api", nothing,
     [](world&) {
       const struct velo_api* api = nullptr;
       return velo_get_api(100, sizeof *api, &api);
     },
     nothing},
    {"velo_version", nothing,
     [](world&) { return velo_version(nullptr, nullptr, nullptr, nullptr); }, nothing},
    {"velo_capability_query", nothing,
     [](world&) {
       std::int32_t available = 0;
       return velo_capability_query(VELO_CAP_CLOSURES, &available);
     },
     nothing},
    {"velo_describe", nothing, [](world&) { return velo_describe(text, sizeof text, nullptr); },
     nothing},
    {"velo_op_count", nothing,
     [](world&) {
       std::int64_t count = 0;
       return velo_op_count(&count);
     },
     nothing},
    {"velo_op_name", nothing,
     [](world&) {
       const char* name = nullptr;
       return velo_op_name(0, &name);
     },
     nothing},
    {"velo_op_describe", nothing,
     [](world&) { return velo_op_describe("add", text, sizeof text, nullptr); }, nothing},
    {"velo_op_call", open,
     [](world& w) {
       static float sums[16];
       velo_tensor out = matrix;
       out.data = sums;
       velo_named_value values[] = {named_matrix("a"), named_matrix("b"), named_matrix("y")};
       values[2].value.as.tensor = &out;
       return velo_op_call(w.now, "add", values, 3);
     },
     close},
    {"velo_op_infer", open, infer, close},
    {"velo_op_explain", open, explain, close},
    {"velo_invoke", nothing, invoke, nothing},
    {"velo_kernel_register", open,
     [](world& w) {
       const velo_kernel_desc desc = kernel_desc();
       return velo_kernel_register(w.context, &desc, &w.kernel);
     },
     close},
    {"velo_kernel_register", open,  // by library and symbol
     [](world& w) {
       velo_kernel_desc desc = VELO_KERNEL_DESC_INIT;
       desc.op = "axpy_of_a_library";
       desc.library = VELO_TEST_PLUGINS "/plugin_kernels.so";
       desc.symbol = "axpy";
       desc.signature = "v(lfplpl)";
       desc.binding = "x.numel, attr.alpha, x.data, 1, y.data, 1";
       desc.tensors = "in x f32, inout y f32";
       return velo_kernel_register(w.context, &desc, &w.kernel);
     },
     close},
    {"velo_kernel_destroy", open_with_kernel,
     [](world& w) {
       velo_kernel_destroy(w.kernel);
       const velo_kernel_desc desc = kernel_desc();
       return velo_kernel_register(w.context, &desc, &w.kernel);
     },
     close},
    {"velo_plugin_load", open,
     [](world& w) { return velo_plugin_load(w.context, VELO_TEST_PLUGINS "/plugin_good.so"); },
     close},
    {"velo_kernel_list", open_with_kernel,
     [](world& w) { return velo_kernel_list(w.context, text, sizeof text, nullptr); }, close},
    {"velo_closure_create", open, create_closure, close},
    {"velo_closure_destroy", open_with_closure,
     [](world& w) -> velo_status {
       velo_closure_destroy(w.closure);
       return VELO_OK;
     },
     close},
    {"velo_pool_create", nothing,
     [](world& w) {
       velo_pool_desc desc = VELO_POOL_DESC_INIT;
       desc.kind = VELO_POOL_SHARED;
       return velo_pool_create(&desc, &w.pool);
     },
     close_pool},
    {"velo_pool_destroy", open_pool,
     [](world& w) {
       velo_pool_destroy(w.pool);
       return gone(velo_pool_check(w.pool));
     },
     nothing},
    {"velo_pool_allocate", open_pool, allocate, close_pool},
    {"velo_pool_free", open_with_block,
     [](world& w) {
       const velo_status status = velo_pool_free(w.pool, w.memory, 1 << 20, nullptr);
       if (status == VELO_OK) w.memory = nullptr;
       return status;
     },
     close_pool},
    {"velo_pool_free", open_with_block,  // behind the work of a stream
     [](world& w) {
       const velo_status status = velo_pool_free(w.pool, w.memory, 1 << 20, w.queue);
       if (status == VELO_OK) w.memory = nullptr;
       return status;
     },
     close_pool},
    {"velo_pool_trim", open_with_block, [](world& w) { return velo_pool_trim(w.pool, 0, nullptr); },
     close_pool},
    {"velo_pool_set_limit", open_pool,
     [](world& w) { return velo_pool_set_limit(w.pool, 1 << 20); }, close_pool},
    {"velo_pool_allocator", open_pool,
     [](world& w) {
       velo_allocator allocator = VELO_ALLOCATOR_INIT;
       return velo_pool_allocator(w.pool, &allocator);
     },
     close_pool},
    {"velo_pool_functions", open_pool,
     [](world& w) {
       void *take = nullptr, *give = nullptr;
       return velo_pool_functions(w.pool, &take, &give);
     },
     close_pool},
    {"velo_pool_check", open_with_block, [](world& w) { return velo_pool_check(w.pool); },
     close_pool},
    {"velo_pool_locate", open_with_block,
     [](world& w) {
       std::int32_t file = -1;
       std::uint64_t offset = 0;
       return velo_pool_locate(w.pool, w.memory, &file, &offset);
     },
     close_pool},
    {"velo_pool_get_stats", open_with_block,
     [](world& w) {
       velo_pool_stats stats = VELO_POOL_STATS_INIT;
       return velo_pool_get_stats(w.pool, &stats);
     },
     close_pool},
    {"velo_pool_record", open_pool, [](world& w) { return velo_pool_record(w.pool, 2000); },
     close_pool},
    {"velo_pool_note", open_recorded,
     [](world& w) { return velo_pool_note(w.pool, w.memory, "said"); }, close_pool},
    {"velo_pool_snapshot", open_recorded,
     [](world& w) {
       return velo_pool_snapshot(w.pool, VELO_SNAPSHOT_TIMELINE, text, sizeof text, nullptr);
     },
     close_pool},
    {"velo_pool_save", open_recorded,
     [](world& w) { return velo_pool_save(w.pool, VELO_SNAPSHOT_JSON, "faults-snapshot.json"); },
     [](world& w) {
       std::remove("faults-snapshot.json");
       close_pool(w);
     }},
    {"velo_pool_get_stream_stats", open_with_block,
     [](world& w) {
       velo_pool_stream_stats stats = VELO_POOL_STREAM_STATS_INIT;
       return velo_pool_get_stream_stats(w.pool, w.queue, &stats);
     },
     close_pool},
    {"velo_adaptor_create", open_pool, create_adaptor, close_adaptor},
    {"velo_adaptor_destroy", open_with_adaptor,
     [](world& w) {
       velo_adaptor_destroy(w.adaptor);
       return gone(velo_adaptor_flush(w.adaptor));
     },
     close_pool},
    {"velo_adaptor_allocator", open_with_adaptor,
     [](world& w) {
       velo_allocator allocator = VELO_ALLOCATOR_INIT;
       return velo_adaptor_allocator(w.adaptor, &allocator);
     },
     close_adaptor},
    {"velo_adaptor_get_stats", open_with_adaptor,
     [](world& w) {
       velo_adaptor_stats stats = VELO_ADAPTOR_STATS_INIT;
       return velo_adaptor_get_stats(w.adaptor, &stats);
     },
     close_adaptor},
    {"velo_adaptor_flush", open_with_adaptor,
     [](world& w) { return velo_adaptor_flush(w.adaptor); }, close_adaptor},
    {"velo_plan_create", nothing, [](world& w) { return velo_plan_create(nullptr, &w.plan); },
     close_plan},
    {"velo_plan_destroy", open_plan,
     [](world& w) {
       velo_plan_destroy(w.plan);
       velo_plan_stats stats = VELO_PLAN_STATS_INIT;
       return gone(velo_plan_get_stats(w.plan, &stats));
     },
     nothing},
    {"velo_plan_add", open_plan, [](world& w) { return velo_plan_add(w.plan, 0, 9, 64, nullptr); },
     close_plan},
    {"velo_plan_read", open_plan, read_plan, close_plan},
    {"velo_plan_solve", open_filled_plan, [](world& w) { return velo_plan_solve(w.plan, nullptr); },
     close_plan},
    {"velo_plan_get_buffer", open_solved_plan,
     [](world& w) {
       velo_plan_buffer buffer = VELO_PLAN_BUFFER_INIT;
       return velo_plan_get_buffer(w.plan, 0, &buffer);
     },
     close_plan},
    {"velo_plan_get_stats", open_filled_plan,
     [](world& w) {
       velo_plan_stats stats = VELO_PLAN_STATS_INIT;
       return velo_plan_get_stats(w.plan, &stats);
     },
     close_plan},
    {"velo_plan_write", open_solved_plan,
     [](world& w) {
       char text[4096];
       return velo_plan_write(w.plan, VELO_PLAN_SVG, text, sizeof text, nullptr);
     },
     close_plan},
    {"velo_recompute_layers", nothing,
     [](world&) {
       velo_recompute_rule rule = VELO_RECOMPUTE_RULE_INIT;
       velo_recompute_layer layer{};
       return velo_recompute_layers(&rule, &layer, 1, nullptr);
     },
     nothing},
    {"velo_recompute_choose", nothing, choose_modules, nothing},
    {"velo_recompute_create", open_pool, create_recompute, close_recompute},
    {"velo_recompute_destroy", open_with_region,
     [](world& w) {
       velo_recompute_destroy(w.recompute);
       velo_recompute_stats stats = VELO_RECOMPUTE_STATS_INIT;
       return gone(velo_recompute_get_stats(w.recompute, &stats));
     },
     close_pool},
    {"velo_recompute_add", open_recompute, add_region, close_recompute},
    {"velo_recompute_get_output", open_with_region,
     [](world& w) { return velo_recompute_get_output(w.recompute, w.region, 1, &w.memory); },
     [](world& w) {
       w.memory = nullptr;  // the region's
       close_recompute(w);
     }},
    {"velo_recompute_release", open_with_region,
     [](world& w) { return velo_recompute_release(w.recompute, w.region, nullptr); },
     close_recompute},
    {"velo_recompute_restore", open_with_released,
     [](world& w) { return velo_recompute_restore(w.recompute, w.region, nullptr); },
     close_recompute},
    {"velo_recompute_end", open_with_region,
     [](world& w) { return velo_recompute_end(w.recompute, w.region, nullptr); }, close_recompute},
    {"velo_recompute_get_stats", open_with_region,
     [](world& w) {
       velo_recompute_stats stats = VELO_RECOMPUTE_STATS_INIT;
       return velo_recompute_get_stats(w.recompute, &stats);
     },
     close_recompute},
    {"velo_recompute_plan_create", nothing,
     [](world& w) { return velo_recompute_plan_create(&w.recompute_plan); }, close_recompute_plan},
    {"velo_recompute_plan_destroy", open_recompute_plan,
     [](world& w) {
       velo_recompute_plan_destroy(w.recompute_plan);
       velo_recompute_plan_stats stats = VELO_RECOMPUTE_PLAN_STATS_INIT;
       return gone(velo_recompute_plan_get_stats(w.recompute_plan, &stats));
     },
     nothing},
    {"velo_recompute_plan_add", open_recompute_plan, [](world& w) { return add_op(w, 3); },
     close_recompute_plan},
    {"velo_recompute_plan_solve", open_recompute_plan, solve_recompute, close_recompute_plan},
    {"velo_recompute_plan_get_step", open_solved_recompute,
     [](world& w) {
       velo_recompute_step step = VELO_RECOMPUTE_STEP_INIT;
       return velo_recompute_plan_get_step(w.recompute_plan, 0, &step);
     },
     close_recompute_plan},
    {"velo_recompute_plan_get_stats", open_solved_recompute,
     [](world& w) {
       velo_recompute_plan_stats stats = VELO_RECOMPUTE_PLAN_STATS_INIT;
       return velo_recompute_plan_get_stats(w.recompute_plan, &stats);
     },
     close_recompute_plan},
    {"velo_swap_create", open_for_swap, create_swap, close_swap},
    {"velo_swap_destroy", open_with_object_out,
     [](world& w) {
       velo_swap_destroy(w.swap);
       velo_swap_stats stats = VELO_SWAP_STATS_INIT;
       return gone(velo_swap_get_stats(w.swap, &stats));
     },
     close_pool},
    {"velo_swap_add", open_swap, add_object, close_swap},
    {"velo_swap_drop", open_with_object_out,
     [](world& w) { return velo_swap_drop(w.swap, w.object, nullptr); }, close_swap},
    {"velo_swap_out", open_with_object, send_object, close_swap},
    {"velo_swap_in", open_with_object_out,
     [](world& w) {
       return await_object(w, velo_swap_in(w.swap, w.object, nullptr, w.now, nullptr));
     },
     close_swap},
    {"velo_swap_wait", open_with_object,
     [](world& w) { return velo_swap_wait(w.swap, w.object, w.now); }, close_swap},
    {"velo_swap_get_object", open_with_object,
     [](world& w) {
       velo_swap_object info = VELO_SWAP_OBJECT_INIT;
       return velo_swap_get_object(w.swap, w.object, &info);
     },
     close_swap},
    {"velo_swap_assign", open_with_object,
     [](world& w) { return velo_swap_assign(w.swap, w.object, 2); }, close_swap},
    {"velo_swap_forward", open_with_object,
     [](world& w) { return await_object(w, velo_swap_forward(w.swap, 1, w.now)); }, close_swap},
    {"velo_swap_backward", open_with_object_out,
     [](world& w) { return velo_swap_backward(w.swap, 1, w.now); }, close_swap},
    {"velo_swap_update", open_with_object_out,
     [](world& w) {
       return velo_swap_update(
           w.swap, &w.object, 1, 3,
           [](void*, std::uint64_t, std::uint64_t, void* const*) -> std::int32_t { return 0; },
           nullptr);
     },
     close_swap},
    {"velo_swap_get_stats", open_with_object,
     [](world& w) {
       velo_swap_stats stats = VELO_SWAP_STATS_INIT;
       return velo_swap_get_stats(w.swap, &stats);
     },
     close_swap},
};

std::vector<entry> make_entries() {
  static std::deque<example_call> examples;
  std::vector<entry> all(std::begin(functions_by_hand), std::end(functions_by_hand));
  for (const hosts::sample& sample : hosts::samples(true)) {
    if (sample.status != VELO_OK) continue;
    const example_call* example = &examples.emplace_back(sample);
    const std::string name = example->spec().function;
    all.push_back({name, open, [](world& w) { return w.example->run(w.now); }, close, example});
    all.push_back({name + " queued", open_with_queue, run_queued, close, example});
    all.push_back({name + " by name", open_with_values, run_by_name, close, example});
  }
  return all;
}

}  // namespace

void world::open() {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 2;
  desc.allocator = allocator_;
  open(desc);
}

void world::open(const velo_context_desc& desc) {
  must(velo_context_create(&desc, &context));
  must(velo_context_stream(context, &now));
}

void world::begin(const velo_context_desc& desc, const entry& row) {
  open(desc);
  must(velo_stream_create(context, &queue));
  example = row.example;
  values = example->values(true);
}

void world::close() {
  velo_context_destroy(context);
  context = nullptr;
}

const std::vector<entry>& every_entry() {
  static const std::vector<entry> all = make_entries();
  return all;
}

std::vector<std::string> functions_without_a_row() {
  std::set<std::string> known;
  for (const entry& e : every_entry()) known.insert(e.name);
  std::vector<std::string> missing;
  for (const function_info& f : functions)
    if (known.count(f.name) == 0) missing.push_back(f.name);
  return missing;
}

}  // namespace velo::testing
