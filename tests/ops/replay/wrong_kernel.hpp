// A kernel of `add` that is wrong in one element, run as check mode runs a kernel.
#pragma once

#include "core/handle/guard.hpp"
#include "ops/call/call.hpp"
#include "ops/elementwise/add.hpp"
#include "tests/ops/operator_testing.hpp"

namespace velo::testing {

inline void add_wrongly(const ops::add_slice<float>& s) {
  for (std::int64_t i = 0; i < s.n; ++i) s.y[i] = s.a[i] + s.b[i];
  if (s.n > 4) s.y[4] += 0.25f;
}

inline velo_status run_wrong_add(const session& s, const velo_add_args& args) {
  static constexpr ops::add_kernels wrong = {{&add_wrongly, nullptr, nullptr}};
  static const ops::kernel_entry entry = [] {
    ops::kernel_entry made = ops::add_kernel_list.entries[0];
    made.name = "wrong";
    made.kernels = &wrong;
    return made;
  }();
  core::stream& stream = core::resolve<core::stream>(s.stream(), "stream");
  return core::guard("velo_add", [&] {
    ops::op_id op{};
    ops::find_op("add", op);
    ops::problem_storage problem;
    ops::check(op, &args, stream.owner(), ops::purpose::run, problem, nullptr);
    stream.run_inline([&](core::execution& on) {
      ops::run_observed(op, entry, &args, problem, ops::observing::checks, on);
    });
  });
}

// a + b of 3 x 5 elements.
struct small_add {
  small_add() {
    a.fill(1), b.fill(2);
    args.a = a.tensor(), args.b = b.tensor(), args.y = y.tensor();
  }
  array<float> a{{3, 5}}, b{{3, 5}}, y{{3, 5}};
  velo_add_args args = VELO_ADD_ARGS_INIT;
};

}  // namespace velo::testing
