// Creation and update of weight packs: the checks of their tensors, and the copy on the stream.
#include "ops/matmul/pack.hpp"

#include <memory>

#include "core/handle/inside.hpp"
#include "core/tensor/check.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/output_shapes.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

void require_product_dtype(velo_dtype dtype) {
  if (dtype == f32 || dtype == bf16 || dtype == f16) return;
  fail(VELO_ERR_DTYPE, "desc.dtype", "float32, bfloat16 or float16", dtype_name(dtype));
}

void require_size(std::int64_t size, const char* name) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (size >= 0 && size < most) return;
  fail(VELO_ERR_SHAPE, text("desc.%s", name), "a size in [0, 2^31)", core::number(size));
}

}  // namespace

weight_pack::weight_pack(core::context& owner, const velo_pack_desc& desc)
    : owner_(owner), transposed_(desc.transpose != 0) {
  if (desc.transpose != 0 && desc.transpose != 1) {
    fail(VELO_ERR_ARGUMENT, "desc.transpose", "0 or 1", text("%d", desc.transpose));
  }
  require_size(desc.k, "k");
  require_size(desc.n, "n");
  const std::int64_t sizes[] = {desc.k, desc.n};
  if (!countable(2, sizes)) refuse_sizes(2, sizes, "desc.k");
  require_product_dtype(desc.dtype);
  matrix_ = packed_matrix(desc.k, desc.n, type_of(desc.dtype), owner.isa());
  bytes_ = matrix_.bytes();
  memory_ = owner.memory().take(bytes_);
  matrix_.set_memory(memory_);
}

void weight_pack::check(const velo_tensor& weight) const {
  if (weight.ndim != 2) {
    fail(VELO_ERR_RANK, "weight.ndim", "2 dimensions", text("%d", weight.ndim));
  }
  core::check_sizes(weight, "weight");
  const std::int64_t sizes[] = {transposed_ ? matrix_.n() : matrix_.k(),
                                transposed_ ? matrix_.k() : matrix_.n()};
  if (weight.shape[0] != sizes[0] || weight.shape[1] != sizes[1]) {
    fail(VELO_ERR_SHAPE, "weight.shape", shape_name(2, sizes), shape_name(2, weight.shape));
  }
  const velo_dtype dtype = dtype_of(matrix_.type());
  if (weight.dtype != dtype) core::refuse_dtype(weight.dtype, dtype_name(dtype), "weight");
  core::check_device(weight.device, owner_.device(), "weight");
  const std::int64_t* strides = weight.strides;
  if (strides != nullptr && ((sizes[1] > 1 && strides[1] != 1) || strides[0] < 0)) {
    fail(VELO_ERR_LAYOUT, "weight.strides", "rows of neighboring elements", shape_name(2, strides));
  }
  if (numel(weight) == 0) return;
  core::tensor_extent(weight, "weight.strides");  // throws when they overflow
  core::check_data(weight, "weight");
}

// An update on a queue stream. It fails if the pack was destroyed before it runs.
class weight_pack::queued_update final : public core::work {
 public:
  queued_update(velo_pack pack, const void* weight, std::int64_t ld)
      : pack_(pack), weight_(weight), ld_(ld) {
    function = "velo_pack_update";
  }
  void run(core::execution& on) override {
    auto& pack = core::resolve<weight_pack>(pack_, "pack");
    const core::inside_scope mine(pack_, core::part::given);
    pack.matrix_.update(weight_, ld_, pack.transposed_, on.threads);
  }

 private:
  const velo_pack pack_;
  const void* weight_;
  std::int64_t ld_;
};

void weight_pack::update(core::stream& stream, const velo_tensor& weight) {
  if (&stream.owner() != &owner_) {
    fail(VELO_ERR_ARGUMENT, "stream", "a stream of the pack's context", "one of another context");
  }
  check(weight);
  const void* from = data<const void>(&weight);
  const std::int64_t ld = weight.strides == nullptr ? weight.shape[1] : weight.strides[0];
  stream.call(
      {core::demand::computes},
      [&](core::execution& on) { matrix_.update(from, ld, transposed_, on.threads); },
      [&] { return stream.make<queued_update>(core::handle_of(*this), from, ld); });
}

}  // namespace velo::ops
