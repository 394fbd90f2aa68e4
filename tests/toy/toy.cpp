// The toy module: a handle, its two functions, and an operator that takes it with two lists of
// tensors and a text.
#include "velo/toy.h"

#include <cstring>

#include "capi/src/boundary.hpp"
#include "capi/src/destroy.hpp"
#include "core/context.hpp"
#include "core/handle/guard.hpp"
#include "core/handle/handle_kinds.hpp"
#include "ops/operator/definition.hpp"
#include "velo/ops_toy.h"

namespace velo {

struct toy {
  float factor = 2;
};

template <>
struct core::handle_traits<toy> {
  using handle = velo_toy;
  static constexpr handle_kind& kind = kinds::toy;
};

namespace ops {
namespace {

struct no_kernels {};
constexpr no_kernels plain;
constexpr kernel_entry entries[] = {{"reference", core::isa::scalar, &plain}};
constexpr kernel_list kernels = {entries, 1};

struct problem {
  float factor;
};

bool says_minus(const velo_toy_scale_args& a) {
  return a.sign != nullptr && std::strcmp(a.sign, "minus") == 0;
}

void infer(const velo_toy_scale_args& a, problem& p, output_shapes&) {
  p.factor = core::resolve<toy>(a.toy, "args.toy").factor;
  if (a.sign != nullptr && std::strcmp(a.sign, "plus") != 0 && !says_minus(a))
    core::fail(VELO_ERR_ARGUMENT, "args.sign", "plus or minus", a.sign);
  if (a.ys == nullptr) return;
  if (a.ys->count != a.xs->count) {
    core::fail(VELO_ERR_ARGUMENT, "args.ys.count", "as many tensors as xs has", "another number");
  }
  for (std::int64_t i = 0; i < a.xs->count; ++i)
    require_like(a.ys->data[i], "ys", a.xs->data[i], "xs");
}

void run(const velo_toy_scale_args& a, const problem& p, const no_kernels&, core::execution&) {
  const float factor = says_minus(a) ? -p.factor : p.factor;
  for (std::int64_t i = 0; i < a.xs->count; ++i) {
    const auto* x = data<const float>(&a.xs->data[i]);
    auto* y = data<float>(&a.ys->data[i]);
    for (std::int64_t k = 0; k < numel(a.xs->data[i]); ++k) y[k] += factor * x[k];
  }
}

}  // namespace

extern const operator_def toy_scale_operator = define<infer, run>(kernels);

}  // namespace ops
}  // namespace velo

using namespace velo;

velo_status velo_toy_create(velo_context context, velo_toy* made) {
  return core::guard("velo_toy_create", [&] {
    core::context& owner = core::resolve<core::context>(context, "context");
    capi::required(made, "toy");
    *made = core::handle_of(core::make_object<toy>(&owner));
  });
}

void velo_toy_destroy(velo_toy gone) {
  capi::destroy<toy>("velo_toy_destroy", gone, "toy");
}
