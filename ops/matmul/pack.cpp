// Creation and update of weight packs: the checks of their tensors, and the copy on the stream.
#include "ops/matmul/pack.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/handle/inside.hpp"
#include "core/tensor/check.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "ops/operator/output_shapes.hpp"
#include "ops/quant/integer_matmul.hpp"

namespace velo::ops {
namespace {

using core::fail;
using core::text;

void require_product_dtype(velo_dtype dtype, bool weight_only) {
  if (weight_only) {
    if (dtype == i8 || dtype == i4) return;
    fail(VELO_ERR_DTYPE, "desc.dtype", "int8 or int4 with weight_only", dtype_name(dtype));
  }
  if (dtype == f32 || dtype == bf16 || dtype == f16 || dtype == i8) return;
  fail(VELO_ERR_DTYPE, "desc.dtype", "float32, bfloat16, float16 or int8", dtype_name(dtype));
}

void require_size(std::int64_t size, const char* name) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (size >= 0 && size < most) return;
  fail(VELO_ERR_SHAPE, text("desc.%s", name), "a size in [0, 2^31)", core::number(size));
}

void require_desc(const velo_pack_desc& desc) {
  if (desc.transpose != 0 && desc.transpose != 1) {
    fail(VELO_ERR_ARGUMENT, "desc.transpose", "0 or 1", text("%d", desc.transpose));
  }
  if (desc.weight_only > 1) {
    fail(VELO_ERR_ARGUMENT, "desc.weight_only", "0 or 1", text("%u", desc.weight_only));
  }
  require_size(desc.k, "k");
  require_size(desc.n, "n");
  require_size(desc.count, "count");
  const std::int64_t sizes[] = {desc.k, desc.n, desc.count};
  const int rank = desc.count == 0 ? 2 : 3;
  if (!countable(rank, sizes)) refuse_sizes(rank, sizes, "desc.k");
  require_product_dtype(desc.dtype, desc.weight_only != 0);
  const bool transposed = desc.transpose != 0;
  if (desc.dtype == i4 && (transposed ? desc.k : desc.n) % 2 != 0)
    fail(VELO_ERR_SHAPE, transposed ? "desc.k" : "desc.n", "even: the last dimension of int4",
         core::number(transposed ? desc.k : desc.n));
  if (desc.dtype != i8 || desc.weight_only != 0) return;
  if (desc.count == 0) fail(VELO_ERR_SHAPE, "desc.count", "1 or more for int8", "0");
  if (desc.k > most_integer_depth)
    fail(VELO_ERR_SHAPE, "desc.k", core::concat("at most ", most_integer_depth, " for int8"),
         core::number(desc.k));
}

}  // namespace

weight_pack::weight_pack(core::context& owner, const velo_pack_desc& desc)
    : owner_(owner),
      dtype_(desc.dtype),
      transposed_(desc.transpose != 0),
      k_(desc.k),
      n_(desc.n),
      count_(desc.count) {
  require_desc(desc);
  if (desc.weight_only != 0) {
    form_.emplace<packed_weight>(k_, n_, dtype_ == i4);
  } else if (dtype_ == i8) {
    form_.emplace<packed_integers>(k_, n_, owner.isa());
  } else {
    form_.emplace<packed_matrix>(k_, n_, type_of(dtype_), owner.isa());
  }
  // Fits: fewer than 2^57 elements, padded to at most 96 bytes each, or fewer than 2^31 matrices of
  // at most 2^33 bytes.
  bytes_ = std::visit([](const auto& one) { return one.bytes(); }, form_) *
           static_cast<std::size_t>(std::max<std::int64_t>(count_, 1));
  memory_ = owner.memory().take(bytes_);
  if (bytes_ > 0) std::memset(memory_, 0, bytes_);  // every form's zeros
}

bool weight_pack::is_within(double least, double most) const {
  if (!std::holds_alternative<packed_matrix>(form_)) return true;
  const std::int64_t matrices = count_ == 0 ? 1 : count_;
  for (std::int64_t e = 0; e < matrices; ++e) {
    const auto one = matrix<packed_matrix>(e);
    for (std::int64_t j = 0; j < n_; ++j) {
      const packed_matrix::column column = one.at(j);
      for (std::int64_t i = 0; i < k_; ++i) {
        const double magnitude = std::abs(static_cast<double>(column[i]));
        if (magnitude != 0 && !(magnitude >= least && magnitude <= most)) return false;
      }
    }
  }
  return true;
}

void weight_pack::check(const velo_tensor& weight) const {
  const int rank = count_ == 0 ? 2 : 3;
  if (weight.ndim != rank) {
    fail(VELO_ERR_RANK, "weight.ndim", text("%d dimensions", rank), text("%d", weight.ndim));
  }
  core::check_sizes(weight, "weight");
  std::int64_t all[] = {count_, transposed_ ? n_ : k_, transposed_ ? k_ : n_};
  const bool pairs = dtype_ == i4 && weight.dtype == u8;
  if (pairs) all[2] /= 2;
  const std::int64_t* sizes = all + (3 - rank);
  if (!std::equal(sizes, sizes + rank, weight.shape)) {
    fail(VELO_ERR_SHAPE, "weight.shape", shape_name(rank, sizes), shape_name(rank, weight.shape));
  }
  if (weight.dtype != dtype_ && !pairs) {
    core::refuse_dtype(weight.dtype,
                       dtype_ == i4 ? "int4, or uint8 with two in each" : dtype_name(dtype_),
                       "weight");
  }
  core::check_device(weight.device, owner_.device(), "weight");
  const std::int64_t* strides = weight.strides;
  if (strides != nullptr &&
      ((all[2] > 1 && strides[rank - 1] != 1) || strides[rank - 2] < 0 || strides[0] < 0)) {
    fail(VELO_ERR_LAYOUT, "weight.strides", "an inner stride of 1, and none below 0",
         shape_name(rank, strides));
  }
  if (numel(weight) == 0) return;
  const auto is_odd = [&](int i) { return all[3 - rank + i] > 1 && strides[i] % 2 != 0; };
  if (weight.dtype == i4 && strides != nullptr && (is_odd(rank - 2) || is_odd(0)))
    fail(VELO_ERR_LAYOUT, "weight.strides", "rows of int4 that begin at bytes",
         shape_name(rank, strides));
  core::tensor_extent(weight, "weight.strides");  // throws when they overflow
  core::check_data(weight, "weight");
}

void weight_pack::pack(const source& from, const core::parallel& threads) const {
  if (bytes_ == 0) return;
  const std::int64_t matrices = count_ == 0 ? 1 : count_;
  std::visit(
      [&](const auto& form) {
        const auto* first = static_cast<const char*>(from.data);
        for (std::int64_t e = 0; e < matrices; ++e)
          placed(form, e).update(first + core::bytes_of(dtype_, e * from.step), from.ld,
                                 transposed_, threads);
      },
      form_);
}

// An update on a queue stream. It fails if the pack was destroyed before it runs.
class weight_pack::queued_update final : public core::work {
 public:
  queued_update(velo_pack pack, const source& from) : pack_(pack), from_(from) {
    function = "velo_pack_update";
  }
  void run(core::execution& on) override {
    auto& pack = core::resolve<weight_pack>(pack_, "pack");
    const core::inside_scope mine(pack_, core::part::given);
    pack.pack(from_, on.threads);
  }

 private:
  const velo_pack pack_;
  const source from_;
};

void weight_pack::update(core::stream& stream, const velo_tensor& weight) {
  if (&stream.owner() != &owner_) {
    fail(VELO_ERR_ARGUMENT, "stream", "a stream of the pack's context", "one of another context");
  }
  check(weight);
  const std::int64_t columns = weight.shape[weight.ndim - 1];
  const std::int64_t* strides = weight.strides;
  source from{data<const void>(&weight), columns, columns * weight.shape[weight.ndim - 2]};
  // A stride of one row, or of one matrix, may be any number.
  const auto stride_of = [&](int i) { return weight.shape[i] > 1 ? strides[i] : 0; };
  if (strides != nullptr) from.ld = stride_of(weight.ndim - 2), from.step = stride_of(0);
  if (numel(weight) == 0) from.ld = from.step = 0;
  if (weight.dtype == u8) from.ld *= 2, from.step *= 2;  // two of int4 in each
  stream.call(
      {core::demand::computes}, [&](core::execution& on) { pack(from, on.threads); },
      [&] { return stream.make<queued_update>(core::handle_of(*this), from); });
}

}  // namespace velo::ops
