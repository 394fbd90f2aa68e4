// The two calls, in the order of their groups.
#include "sched/moe/choice_exchange.hpp"

#include "sched/moe/submit.hpp"

namespace velo::sched {
namespace {

constexpr velo_dtype int64{VELO_DTYPE_INT, 64, 1};

}  // namespace

comm::operation choice_limitation::request() const {
  return counts_of({function, rule, given.order}, *routes);
}
void choice_limitation::carry_out(const comm::group::ticket& place, core::execution& on) const {
  among->serve(place, request(), [&](comm::transport& link, core::arena&) {
    routes->read(given.choices);
    limit_choices({function, rule, given.order}, *routes, &link, on);
  });
}

comm::operation choice_exchange::request() const {
  const std::int64_t numbers = routes->numbers();
  comm::operation op;
  op.function = function;
  op.terms.kind = comm::collective::all_gather;
  op.terms.in_code = op.terms.out_code = int64.code;
  op.terms.in_bits = op.terms.out_bits = int64.bits;
  op.terms.count = numbers;
  op.terms.require_same(
      comm::mixed(rule.hash() + static_cast<std::uint64_t>(routes->layout().top_k)));
  op.in = routes->own_counts();
  op.out = routes->all_counts();
  op.set_count(numbers);
  op.out_count = numbers * routes->layout().ranks;
  return op;
}
void choice_exchange::carry_out(const comm::group::ticket& place, core::execution& on) const {
  const comm::operation op = request();
  among->serve(place, op, [&](comm::transport& link, core::arena&) {
    if (reads) {
      routes->read(given.choices);
      if (rule.limits()) limit_choices({function, rule, given.order}, *routes, nullptr, on);
    }
    routes->sort();
    link.run(op, on);
    routes->complete();
  });
}

void submit(core::stream& on, const choice_limitation& what) {
  submit_in_order(on, what);
}
void submit(core::stream& on, const choice_exchange& what) {
  submit_in_order(on, what);
}

}  // namespace velo::sched
