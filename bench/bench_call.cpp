// bench_call: nanoseconds a call of a small operator, by every way there is to make one.
//
// Shapes are so small that the way is what is measured: rms_norm 1x64, add of 64 elements, a
// product of 16^3. Ways: the C entry on the inline stream, the same on a queue (64 calls and one
// synchronize, a 64th of it), by name, and each host adapter as its host calls it, with the
// arguments laid out beforehand; beside them oneDNN's primitive made beforehand (layer
// normalization for rms_norm, which it lacks). All alternate in one run on one thread. Goals:
// goals.json, calls. Cost: a few seconds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/harness/goals.hpp"
#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"
#include "bench/limits/machine.hpp"
#include "bench/peers/peers.hpp"
#include "capi/adapters/tvm/abi.hpp"
#include "capi/adapters/xla/abi.hpp"
#include "velo/adapters.h"
#include "velo/velo.h"

extern "C" {
#define VELO_BENCH_ADAPTERS(op)                                                    \
  int velo_ms_##op(int, void**, int*, std::int64_t**, const char**, void*, void*); \
  void* velo_xla_##op(void*);                                                      \
  int __tvm_ffi_velo_##op(void*, const void*, std::int32_t, void*);
VELO_BENCH_ADAPTERS(rms_norm)
VELO_BENCH_ADAPTERS(add)
VELO_BENCH_ADAPTERS(matmul)
#undef VELO_BENCH_ADAPTERS
}

namespace velo::bench {
namespace {

namespace tvm = adapters::tvm;
namespace xla = adapters::xla;

constexpr int queued_calls = 64;

void require_null(const void* failure) {
  require(failure == nullptr ? VELO_OK : VELO_ERR_FOREIGN);
}

// Two inputs and an output of one shape each, and their names in field order.
struct operands {
  std::int64_t shapes[3][2];
  int ranks[3];
  const char* names[3];
  float elements[3][256];
  velo_tensor tensors[3];

  operands(std::int64_t rows, std::int64_t columns, int rank_of_second, const char* first,
           const char* second, const char* output)
      : names{first, second, output} {
    for (int i = 0; i < 3; ++i) {
      ranks[i] = i == 1 ? rank_of_second : 2;
      shapes[i][0] = ranks[i] == 1 ? columns : rows;
      shapes[i][1] = columns;
      for (float& x : elements[i]) x = 0.5f;
      tensors[i] = {elements[i],
                    {VELO_DEVICE_CPU, 0},
                    ranks[i],
                    {VELO_DTYPE_FLOAT, 32, 1},
                    shapes[i],
                    nullptr,
                    0};
    }
  }
  operands(const operands&) = delete;

  std::vector<velo_named_value> named() const {
    std::vector<velo_named_value> values(3);
    for (std::size_t i = 0; i < 3; ++i) {
      values[i].name = names[i];
      values[i].value.kind = VELO_VALUE_TENSOR;
      values[i].value.as.tensor = &tensors[i];
    }
    return values;
  }
};

// The arguments of an AOT kernel, as MindSpore lays them out.
struct mindspore_call {
  void* params[3];
  int ranks[3];
  std::int64_t* shapes[3];
  const char* dtypes[3];

  explicit mindspore_call(operands& o) {
    for (int i = 0; i < 3; ++i) {
      params[i] = o.elements[i];
      ranks[i] = o.ranks[i];
      shapes[i] = o.shapes[i];
      dtypes[i] = "float32";
    }
  }
};

// A call frame without attributes, of a host that lends no threads.
struct xla_call {
  xla::buffer buffers[3];
  void* items[3];
  std::int32_t types[3] = {xla::item_buffer, xla::item_buffer, xla::item_buffer};
  xla::api api{};
  xla::call_frame frame{};

  explicit xla_call(operands& o) {
    for (int i = 0; i < 3; ++i) {
      buffers[i] = {sizeof(xla::buffer), nullptr,    xla::type_f32,
                    o.elements[i],       o.ranks[i], o.shapes[i]};
      items[i] = &buffers[i];
    }
    api.struct_size = sizeof api;
    frame.struct_size = sizeof frame;
    frame.api = &api;
    frame.stage = xla::stage_execute;
    frame.args = {sizeof frame.args, nullptr, 2, types, items};
    frame.rets = {sizeof frame.rets, nullptr, 1, types + 2, items + 2};
    frame.attrs = {sizeof frame.attrs, nullptr, 0, nullptr, nullptr, nullptr};
  }
};

// The first values of a packed call; fields between inputs and output are left out (None).
struct tvm_call {
  std::vector<tvm::value> values;

  tvm_call(operands& o, int left_out) {
    add(o.tensors[0]);
    add(o.tensors[1]);
    for (int i = 0; i < left_out; ++i) values.push_back({tvm::type_none, 0, {0}});
    add(o.tensors[2]);
  }
  void add(velo_tensor& t) {
    values.push_back({tvm::type_dl_tensor, 0, {0}});
    values.back().pointer = &t;
  }
  std::int32_t count() const { return static_cast<std::int32_t>(values.size()); }
};

struct way {
  std::string name;
  std::function<void(int)> call;
  int calls = 1;  // of the operator
};

struct session {
  velo_context context = nullptr;
  velo_stream now = nullptr, queue = nullptr;

  session() {
    velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
    desc.threads = 1;
    require(velo_context_create(&desc, &context));
    require(velo_context_stream(context, &now));
    require(velo_stream_create(context, &queue));
    require(velo_adapters_set_context(context));
  }
  ~session() { velo_context_destroy(context); }
  session(const session&) = delete;
};

struct entries {
  decltype(&velo_ms_add) mindspore;
  decltype(&velo_xla_add) xla;
  decltype(&__tvm_ffi_velo_add) tvm;
  int left_out_of_tvm;
};

// call(stream) makes the typed call.
template <class Call>
result measure_operator(const std::string& op, const std::string& shape, operands& o,
                        const session& s, const Call& call, const entries& by,
                        const bound_call& peer) {
  const std::vector<velo_named_value> named = o.named();
  mindspore_call ms(o);
  xla_call frame(o);
  tvm_call packed(o, by.left_out_of_tvm);
  std::vector<way> ways = {
      {"inline", [&](int) { require(call(s.now)); }},
      {"queue",
       [&](int) {
         for (int i = 0; i < queued_calls; ++i) require(call(s.queue));
         require(velo_stream_synchronize(s.queue));
       },
       queued_calls},
      {"by name", [&](int) { require(velo_op_call(s.now, op.c_str(), named.data(), 3)); }},
      {"MindSpore",
       [&](int) {
         require(by.mindspore(3, ms.params, ms.ranks, ms.shapes, ms.dtypes, nullptr, nullptr));
       }},
      {"XLA", [&](int) { require_null(by.xla(&frame.frame)); }},
      {"tvm-ffi", [&](int) {
         tvm::value answer{};
         require(by.tvm(nullptr, packed.values.data(), packed.count(), &answer));
       }}};
  if (peer) ways.push_back({"oneDNN", [&](int) { peer(); }});

  std::vector<candidate> candidates;
  for (const way& w : ways) candidates.push_back({w.name, w.call});
  measuring how;
  how.budget = 4;
  const outcome measured = measure(candidates, how);

  result row;
  row.name = op;
  row.shape = shape;
  std::printf("%-10s %-8s", op.c_str(), shape.c_str());
  for (std::size_t i = 0; i < ways.size(); ++i)
    std::printf(" %9.0f", measured.timings[i].p25 * 1e9 / ways[i].calls);
  std::printf(peer ? "\n" : "         -\n");
  row.p25s.push_back(measured.timings[0].p25);
  if (peer) row.add_peer("oneDNN", 0, speed_ratio(measured, 0, ways.size() - 1));
  return row;
}

int run() {
  const machine on = identify_machine();
  pin_thread(on.cpus[0]);
  onednn::set_threads(1);
  const session s;
  std::printf("%s, load %.1f, %s: nanoseconds a call, one thread\n", on.kind.c_str(),
              load_average(), onednn::version().c_str());
  std::printf("%-10s %-8s %9s %9s %9s %9s %9s %9s %9s\n", "operator", "shape", "inline", "queue",
              "by name", "MindSpore", "XLA", "tvm-ffi", "oneDNN");
  std::vector<result> rows;

  operands norm(1, 64, 1, "x", "gamma", "y");
  rows.push_back(measure_operator(
      "rms_norm", "1x64", norm, s,
      [&](velo_stream stream) {
        velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
        args.x = &norm.tensors[0], args.gamma = &norm.tensors[1], args.y = &norm.tensors[2];
        return velo_rms_norm(stream, &args);
      },
      {velo_ms_rms_norm, velo_xla_rms_norm, __tvm_ffi_velo_rms_norm, 0},
      onednn::layer_norm(dtype::f32, 1, 64, norm.elements[0], norm.elements[2])));

  operands sum(1, 64, 2, "a", "b", "y");
  rows.push_back(measure_operator(
      "add", "64", sum, s,
      [&](velo_stream stream) {
        velo_add_args args = VELO_ADD_ARGS_INIT;
        args.a = &sum.tensors[0], args.b = &sum.tensors[1], args.y = &sum.tensors[2];
        return velo_add(stream, &args);
      },
      {velo_ms_add, velo_xla_add, __tvm_ffi_velo_add, 0},
      onednn::add(dtype::f32, 1, 64, sum.elements[0], sum.elements[1], sum.elements[2])));

  operands product_of(16, 16, 2, "a", "b", "c");
  rows.push_back(measure_operator(
      "matmul", "16x16x16", product_of, s,
      [&](velo_stream stream) {
        velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
        args.a = &product_of.tensors[0], args.b = &product_of.tensors[1];
        args.c = &product_of.tensors[2];
        return velo_matmul(stream, &args);
      },
      {velo_ms_matmul, velo_xla_matmul, __tvm_ffi_velo_matmul, 2},
      onednn::matmul({16, 16, 16}, product_of.elements[0], product_of.elements[1],
                     product_of.elements[2])));

  const judgement j = judge(VELO_BENCH_FOLDER "/goals.json", "calls", on.kind, rows);
  print_judgement(stdout, j);
  bool all = true;
  for (const verdict& v : j.verdicts) all = all && v.fraction >= 1;
  return all ? 0 : 1;
}

}  // namespace
}  // namespace velo::bench

int main() {
  return velo::bench::run();
}
