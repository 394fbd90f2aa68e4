// The rows of contexts, streams, packs and kernels, those of operators, and the table of all rows.
#include "tests/calls/rows.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <stdexcept>

#include "core/signature.hpp"
#include "tests/ops/example_call.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {

char text[1 << 20];

void nothing(world&) {}
void open(world& w) {
  w.open();
}
void open_with_queue(world& w) {
  w.open();
  must(velo_stream_create(w.context, &w.queue));
}
velo_status gone(velo_status of_a_call) {
  return of_a_call == VELO_ERR_HANDLE ? VELO_OK : VELO_ERR_INTERNAL;
}

namespace {

using core::direction;
using core::function_info;
using core::parameter_info;
using core::thread_class;
using core::value_type;
#include "abi/generated/functions.inc"

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
const velo_tensor matrix = view_of(numbers, f32, square);

velo_named_value named_matrix(const char* name) {
  velo_named_value v{};
  v.name = name;
  v.value.kind = VELO_VALUE_TENSOR;
  v.value.as.tensor = &matrix;
  return v;
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
velo_status update_pack(world& w) {
  return velo_pack_update(w.now, w.pack, &matrix);
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
  must(velo_tensor_create(w.context, &f32, 2, square, &w.managed));
}

void open_with_profiler(world& w) {
  open_with_queue(w);
  velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
  desc.level = VELO_PROFILER_WAITS;
  desc.events = 16;
  must(velo_profiler_create(w.context, &desc, &w.profiler));
  must(velo_profiler_begin(w.profiler, "range"));
}
void open_with_profile(world& w) {
  open_with_profiler(w);
  must(velo_profiler_end(w.profiler));
  must(velo_profiler_stop(w.profiler));
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
// Two matrices of ones.
struct two_matrices {
  two_matrices() {
    for (int i = 0; i < 2; ++i) {
      std::fill_n(numbers[i], 16, 1.0f);
      tensors[i] = matrix;
      tensors[i].data = numbers[i];
    }
  }
  float numbers[2][16];
  velo_tensor tensors[2];
  velo_tensors list{tensors, 2};
};

template <auto Function, class Args>
velo_status update_lists(world& w, Args args) {
  two_matrices grad, param, m, v;
  args.grad = &grad.list, args.param = &param.list, args.m = &m.list, args.v = &v.list;
  two_matrices ema;
  if constexpr (std::is_same_v<Args, velo_multi_tensor_ema_adamw_args>) args.ema = &ema.list;
  return Function(w.now, &args);
}

velo_status norm_of_list(world& w) {
  two_matrices x;
  double sum = 0;
  velo_tensor squares{};
  squares.data = &sum, squares.dtype = {VELO_DTYPE_FLOAT, 64, 1};
  squares.device = {VELO_DEVICE_CPU, 0};
  velo_multi_tensor_global_norm_args args = VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT;
  args.x = &x.list, args.sum_of_squares = &squares;
  return velo_multi_tensor_global_norm(w.now, &args);
}

velo_status multiply_lists(world& w) {
  two_matrices x, weight, y;
  velo_grouped_matmul_all_reduce_args args = VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT;
  args.x = &x.list, args.weight = &weight.list, args.y = &y.list;
  return velo_grouped_matmul_all_reduce(w.now, &args);
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
velo_status cost(world& w) {
  const velo_named_value inputs[] = {named_matrix("a"), named_matrix("b")};
  velo_cost to = VELO_COST_INIT;
  return velo_op_cost(w.context, "add", inputs, 2, &to);
}
velo_status get_counts(world& w) {
  velo_op_counts counts = VELO_OP_COUNTS_INIT;
  return velo_op_get_counts(w.context, "add", &counts);
}
velo_status reset_counts(world& w) {
  return velo_op_reset_counts(w.context);
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
  velo_context_desc desc = context_desc(2, w.allocator());
  desc.config_json =
      R"({"level": 1, "kernel.rms_norm": "reference", "log": "off", "closures": true})";
  return velo_context_create(&desc, &w.context);
}

const call_row functions_by_hand[] = {
    {"velo_last_error", nothing,
     [](world&) {
       velo_error_info info = VELO_ERROR_INFO_INIT;
       return velo_last_error(&info);
     }},
    {"velo_error_text", nothing,
     [](world&) { return velo_error_text(text, sizeof text, nullptr); }},
    {"velo_status_describe", nothing,
     [](world&) { return velo_status_describe(VELO_ERR_NULL, nullptr, nullptr); }},
    {"velo_tensor_create", open,
     [](world& w) { return velo_tensor_create(w.context, &f32, 2, square, &w.managed); }},
    {"velo_tensor_import", open_with_tensor,
     [](world& w) {
       velo_tensor view{};
       return velo_tensor_import(w.context, w.managed, &view);
     }},
    {"velo_tensor_release", open_with_tensor,
     [](world& w) -> velo_status {
       velo_tensor_release(w.managed);
       w.managed = nullptr;
       return VELO_OK;
     }},
    {"velo_tensor_extent", nothing,
     [](world&) {
       std::uint64_t bytes = 0;
       return velo_tensor_extent(&matrix, &bytes);
     }},
    {"velo_context_create", nothing, create_context},
    {"velo_context_destroy", open_with_event,
     destroy<velo_context_destroy, &world::context, get<velo_context_stream, &world::context>>},
    {"velo_context_stream", open, get<velo_context_stream, &world::context>},
    {"velo_config_set", open,
     [](world& w) { return velo_config_set(w.context, "kernel.rms_norm", "reference"); }},
    {"velo_config_get", open,
     [](world& w) {
       return velo_config_get(w.context, "isa", text, sizeof text, nullptr, nullptr);
     }},
    {"velo_config_list", open, write_text<velo_config_list, &world::context>},
    {"velo_context_get_stats", open, get<velo_context_get_stats, &world::context>},
    {"velo_stream_create", open, [](world& w) { return velo_stream_create(w.context, &w.queue); }},
    {"velo_stream_destroy", open_with_queue,
     destroy<velo_stream_destroy, &world::queue, run_on<velo_stream_synchronize, &world::queue>>},
    {"velo_stream_synchronize", open_with_queue,
     [](world& w) { return velo_stream_synchronize(w.queue); }},
    {"velo_stream_query", open_with_queue, get<velo_stream_query, &world::queue>},
    {"velo_stream_clear", open_with_queue, [](world& w) { return velo_stream_clear(w.queue); }},
    {"velo_stream_wait", open_with_event,
     [](world& w) { return velo_stream_wait(w.queue, w.event); }},
    {"velo_event_create", open, [](world& w) { return velo_event_create(w.context, &w.event); }},
    {"velo_event_destroy", open_with_event,
     destroy<velo_event_destroy, &world::event, get<velo_event_query, &world::event>>},
    {"velo_event_record", open_with_event,
     [](world& w) { return velo_event_record(w.event, w.queue); }},
    {"velo_event_synchronize", open_with_event,
     [](world& w) { return velo_event_synchronize(w.event, -1); }},
    {"velo_event_query", open_with_event, get<velo_event_query, &world::event>},
    {"velo_pack_create", open,
     [](world& w) {
       velo_pack_desc desc = VELO_PACK_DESC_INIT;
       desc.k = desc.n = 4;
       return velo_pack_create(w.context, &desc, &w.pack);
     }},
    {"velo_pack_destroy", open_with_pack, destroy<velo_pack_destroy, &world::pack, update_pack>},
    {"velo_pack_update", open_with_pack, update_pack},
    {"velo_profiler_create", open,
     [](world& w) {
       velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
       desc.events = 16;
       return velo_profiler_create(w.context, &desc, &w.profiler);
     }},
    {"velo_profiler_destroy", open_with_profile,
     destroy<velo_profiler_destroy, &world::profiler,
             get<velo_profiler_get_stats, &world::profiler>>},
    {"velo_profiler_begin", open_with_profiler,
     [](world& w) { return velo_profiler_begin(w.profiler, "step"); }},
    {"velo_profiler_end", open_with_profiler,
     [](world& w) {  // on the thread of its range
       const velo_status begun = velo_profiler_begin(w.profiler, "step");
       return begun != VELO_OK ? begun : velo_profiler_end(w.profiler);
     }},
    {"velo_profiler_stop", open_with_profiler,
     [](world& w) { return velo_profiler_stop(w.profiler); }},
    {"velo_profiler_get_stats", open_with_profile, get<velo_profiler_get_stats, &world::profiler>},
    {"velo_profiler_get_event", open_with_profile,
     [](world& w) {
       velo_profiler_event event = VELO_PROFILER_EVENT_INIT;
       return velo_profiler_get_event(w.profiler, 0, &event);
     }},
    {"velo_profiler_write", open_with_profile,
     [](world& w) {
       return velo_profiler_write(w.profiler, VELO_PROFILER_TRACE, text, sizeof text, nullptr);
     }},
    {"velo_profiler_write", open_with_profile,
     write_text<velo_profiler_write, &world::profiler, VELO_PROFILER_EVENTS>},
    {"velo_profiler_save", open_with_profile,
     [](world& w) {
       const char* name = "faults-profile.json";
       const velo_status status = velo_profiler_save(w.profiler, name);
       std::remove(name);
       return status;
     }},
    {"velo_get_api", nothing,
     [](world&) {
       const struct velo_api* api = nullptr;
       return velo_get_api(100, sizeof *api, &api);
     }},
    {"velo_version", nothing,
     [](world&) { return velo_version(nullptr, nullptr, nullptr, nullptr); }},
    {"velo_capability_query", nothing,
     [](world&) {
       std::int32_t available = 0;
       return velo_capability_query(VELO_CAP_CLOSURES, &available);
     }},
    {"velo_describe", nothing, [](world&) { return velo_describe(text, sizeof text, nullptr); },
     nullptr, true},
    {"velo_op_count", nothing,
     [](world&) {
       std::int64_t count = 0;
       return velo_op_count(&count);
     }},
    {"velo_op_name", nothing,
     [](world&) {
       const char* name = nullptr;
       return velo_op_name(0, &name);
     }},
    {"velo_op_describe", nothing,
     [](world&) { return velo_op_describe("add", text, sizeof text, nullptr); }},
    {"velo_op_call", open,
     [](world& w) {
       static float sums[16];
       velo_tensor out = matrix;
       out.data = sums;
       velo_named_value values[] = {named_matrix("a"), named_matrix("b"), named_matrix("y")};
       values[2].value.as.tensor = &out;
       return velo_op_call(w.now, "add", values, 3);
     }},
    {"velo_op_infer", open, infer},
    {"velo_multi_tensor_adamw", open,
     [](world& w) {
       velo_multi_tensor_adamw_args args = VELO_MULTI_TENSOR_ADAMW_ARGS_INIT;
       return update_lists<velo_multi_tensor_adamw>(w, args);
     }},
    {"velo_multi_tensor_ema_adamw", open,
     [](world& w) {
       velo_multi_tensor_ema_adamw_args args = VELO_MULTI_TENSOR_EMA_ADAMW_ARGS_INIT;
       return update_lists<velo_multi_tensor_ema_adamw>(w, args);
     }},
    {"velo_multi_tensor_global_norm", open, norm_of_list},
    {"velo_grouped_matmul_all_reduce", open, multiply_lists},
    {"velo_op_explain", open, explain},
    {"velo_op_cost", open, cost},
    {"velo_op_get_counts", open, get_counts},
    {"velo_op_reset_counts", open, reset_counts},
    {"velo_invoke", nothing, invoke},
    {"velo_kernel_register", open,
     [](world& w) {
       const velo_kernel_desc desc = kernel_desc();
       return velo_kernel_register(w.context, &desc, &w.kernel);
     }},
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
     }},
    {"velo_kernel_destroy", open_with_kernel,
     [](world& w) {
       velo_kernel_destroy(w.kernel);
       const velo_kernel_desc desc = kernel_desc();
       return velo_kernel_register(w.context, &desc, &w.kernel);
     }},
    {"velo_plugin_load", open,
     [](world& w) { return velo_plugin_load(w.context, VELO_TEST_PLUGINS "/plugin_good.so"); }},
    {"velo_kernel_list", open_with_kernel, write_text<velo_kernel_list, &world::context>},
    {"velo_closure_create", open, create_closure},
    {"velo_closure_destroy", open_with_closure,
     [](world& w) -> velo_status {
       velo_closure_destroy(w.closure);
       return VELO_OK;
     }},
};

std::vector<call_row> make_rows() {
  static std::deque<example_call> examples;
  std::vector<call_row> all(std::begin(functions_by_hand), std::end(functions_by_hand));
  for (const auto& rows :
       {memory_rows(), plan_rows(), comm_rows(), topology_rows(), sharding_rows(), sched_rows(),
        dispatcher_rows(), expert_rows(), sequence_rows(), executor_rows(), tune_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  for (const hosts::sample& sample : hosts::samples(true)) {
    if (sample.status != VELO_OK) continue;
    const example_call* example = &examples.emplace_back(sample);
    const std::string name = example->spec().function;
    all.push_back({name, open, [](world& w) { return w.example->run(w.now); }, example});
    all.push_back({name + " queued", open_with_queue, run_queued, example});
    all.push_back({name + " by name", open_with_values, run_by_name, example});
  }
  return all;
}

}  // namespace

void call_row::begin(world& w) const {
  w.example = example;
  prepare(w);
}
void call_row::begin(world& w, const velo_context_desc& desc) const {
  w.open(desc);
  must(velo_stream_create(w.context, &w.queue));
  w.example = example;
  w.values = example->values(true);
}
void call_row::end(world& w) const {
  if (w.peer_queue != nullptr) must(velo_stream_synchronize(w.peer_queue));
  w.close();
}

const std::vector<call_row>& every_call_row() {
  static const std::vector<call_row> all = make_rows();
  return all;
}

std::vector<std::string> functions_without_a_row() {
  std::set<std::string> known;
  for (const call_row& e : every_call_row()) known.insert(e.name);
  std::vector<std::string> missing;
  for (const function_info& f : functions)
    if (known.count(f.name) == 0) missing.push_back(f.name);
  return missing;
}

}  // namespace velo::testing
