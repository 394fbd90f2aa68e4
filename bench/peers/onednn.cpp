// oneDNN through its C++ API, one engine and one stream for the process. Primitives keep their
// scratchpad, as a user's would.
#include <omp.h>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "bench/limits/machine.hpp"
#include "bench/peers/peers.hpp"

namespace velo::bench::onednn {
namespace {

using tag = dnnl::memory::format_tag;

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  static dnnl::stream in_order(engine());
  return in_order;
}

dnnl::memory::data_type type_of(dtype type) {
  return type == dtype::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::memory::desc describe(std::int64_t rows, std::int64_t columns, dtype type,
                            tag layout = tag::ab) {
  return {{rows, columns}, type_of(type), layout};
}

dnnl::memory wrap(const dnnl::memory::desc& desc, const void* data) {
  return {desc, engine(), const_cast<void*>(data)};
}

dnnl::memory::desc describe_b(const product& p) {
  return describe(p.k, p.n, p.type, p.transpose_b ? tag::ba : tag::ab);
}

dnnl::matmul::primitive_desc choose(const product& p) {
  const auto a = describe(p.m, p.k, p.type, p.transpose_a ? tag::ba : tag::ab);
  const auto b = p.packed ? describe(p.k, p.n, p.type, tag::any) : describe_b(p);
  const auto c = describe(p.m, p.n, p.accumulate_f32 ? dtype::f32 : p.type);
  dnnl::primitive_attr attributes;
  if (p.accumulate_f32) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  return {dnnl::matmul::desc(a, b, c), attributes, engine()};
}

// A primitive with its arguments; `owned` keeps packed weights alive.
bound_call bind(dnnl::primitive primitive, std::unordered_map<int, dnnl::memory> arguments,
                std::shared_ptr<buffer> owned = nullptr) {
  return [primitive, arguments, owned] {
    primitive.execute(stream(), arguments);
    stream().wait();
  };
}

}  // namespace

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

void set_threads(int threads) {
  omp_set_num_threads(threads);
}

bound_call matmul(const product& p, const void* a, const void* b, void* c) {
  if (p.type == dtype::f16) return {};  // oneDNN 2.6 has none on a CPU
  const auto chosen = choose(p);
  dnnl::memory weights = wrap(describe_b(p), b);
  std::shared_ptr<buffer> owned;
  if (p.packed) {
    owned = std::make_shared<buffer>(chosen.weights_desc().get_size());
    dnnl::memory packed = wrap(chosen.weights_desc(), owned->data());
    dnnl::reorder(weights, packed).execute(stream(), weights, packed);
    stream().wait();
    weights = packed;
  }
  return bind(dnnl::matmul(chosen),
              {{DNNL_ARG_SRC, wrap(chosen.src_desc(), a)},
               {DNNL_ARG_WEIGHTS, weights},
               {DNNL_ARG_DST, wrap(chosen.dst_desc(), c)}},
              owned);
}

std::string matmul_kernel(const product& p) {
  return choose(p).impl_info_str();
}

bound_call cast(dtype from, dtype to, std::int64_t rows, std::int64_t columns, const void* in,
                void* out) {
  if (from == dtype::f16 || to == dtype::f16) return {};  // nor conversions and sums of it
  const dnnl::memory source = wrap(describe(rows, columns, from), in);
  const dnnl::memory target = wrap(describe(rows, columns, to), out);
  return bind(dnnl::reorder(source, target), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

bound_call add(dtype type, std::int64_t rows, std::int64_t columns, const void* a, const void* b,
               void* c) {
  if (type == dtype::f16) return {};
  const auto shape = describe(rows, columns, type);
  const dnnl::binary::primitive_desc chosen({dnnl::algorithm::binary_add, shape, shape, shape},
                                            engine());
  return bind(dnnl::binary(chosen), {{DNNL_ARG_SRC_0, wrap(shape, a)},
                                     {DNNL_ARG_SRC_1, wrap(shape, b)},
                                     {DNNL_ARG_DST, wrap(shape, c)}});
}

bound_call layer_norm(dtype type, std::int64_t rows, std::int64_t columns, const void* x, void* y) {
  const auto shape = describe(rows, columns, type);
  const dnnl::layer_normalization_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, shape, 1e-5f, dnnl::normalization_flags::none},
      engine());
  return bind(dnnl::layer_normalization_forward(chosen),
              {{DNNL_ARG_SRC, wrap(shape, x)}, {DNNL_ARG_DST, wrap(shape, y)}});
}

}  // namespace velo::bench::onednn
