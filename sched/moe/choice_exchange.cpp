// The two calls, in the order of their groups.
#include "sched/moe/choice_exchange.hpp"

#include <utility>

#include "core/failure.hpp"
#include "core/tensor/dtype.hpp"
#include "sched/moe/host_routes.hpp"
#include "sched/moe/submit.hpp"

namespace velo::sched {
namespace {

// Ranks that move rows through the slots of a relay, or gather all tokens, know the choices that
// rows belong to.
void exchange_order(const char* function, row_routes& routes, comm::transport& link,
                    core::execution& on) {
  std::vector<std::int32_t> received(core::at(routes.received_rows()));
  comm::operation op;
  op.function = function;
  op.terms.kind = comm::collective::all_to_all;
  op.terms.in_code = op.terms.out_code = core::i32.code;
  op.terms.in_bits = op.terms.out_bits = core::i32.bits;
  op.terms.require_same(routes.hash());
  op.in = routes.order().data();
  op.out = received.data();
  op.in_blocks = routes.given(), op.out_blocks = routes.received();
  op.out_count = routes.received_rows();
  op.set_count(op.in_block(link.rank()).count);
  link.run(op, on);
  routes.map_choices(std::move(received));
}

comm::operation gather_of(const char* function, const row_routes& routes) {
  comm::operation op;
  op.function = function;
  op.terms.kind = comm::collective::all_gather;
  op.terms.in_code = op.terms.out_code = core::i64.code;
  op.terms.in_bits = op.terms.out_bits = core::i64.bits;
  op.terms.require_same(routes.hash());
  return op;
}

// Ranks of several hosts know which tokens they pass on.
void exchange_passed(const char* function, row_routes& routes, comm::transport& link,
                     core::execution& on) {
  const auto ways = std::make_shared<host_routes>(routes, link.hosts());
  comm::operation counts = gather_of(function, routes);
  counts.in = ways->own_counts().data(), counts.out = ways->all_counts();
  counts.set_count(link.size());
  counts.terms.count = link.size();
  counts.out_count = std::int64_t{link.size()} * link.size();
  link.run(counts, on);
  const host_routes::lists needed = ways->needed();
  host_routes::lists wanted = ways->room_for_wanted();
  comm::operation op = gather_of(function, routes);
  op.terms.kind = comm::collective::all_to_all;
  op.terms.in_code = op.terms.out_code = core::i32.code;
  op.terms.in_bits = op.terms.out_bits = core::i32.bits;
  op.in = needed.tokens.data(), op.out = wanted.tokens.data();
  op.in_blocks = needed.parts, op.out_blocks = wanted.parts;
  op.out_count = wanted.count();
  op.set_count(op.in_block(link.rank()).count);
  link.run(op, on);
  ways->complete(wanted);
  routes.set_over_hosts(ways);
}

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
  op.terms.in_code = op.terms.out_code = core::i64.code;
  op.terms.in_bits = op.terms.out_bits = core::i64.bits;
  op.terms.count = numbers;
  const expert_layout& of = routes->layout();
  op.terms.require_same(comm::mixed(rule.hash() + static_cast<std::uint64_t>(of.top_k)) +
                        comm::mixed(static_cast<std::uint64_t>(of.kind)));
  op.in = routes->own_counts();
  op.out = routes->all_counts();
  op.set_count(numbers);
  op.out_count = numbers * of.ranks;
  return op;
}
void choice_exchange::carry_out(const comm::group::ticket& place, core::execution& on) const {
  const comm::operation op = request();
  std::int64_t beyond = row_routes::no_expert;
  among->serve(place, op, [&](comm::transport& link, core::arena&) {
    if (reads) {
      routes->read(given.choices);
      if (rule.limits()) limit_choices({function, rule, given.order}, *routes, nullptr, on);
    }
    routes->sort();
    link.run(op, on);
    if (rule.limits() && !rule.alone) beyond = routes->expert_beyond_capacity();
    if (beyond != row_routes::no_expert) return;
    routes->complete();
    const bool gathers = routes->layout().kind == VELO_DISPATCH_ALL_GATHER;
    const bool passes =
        routes->layout().kind == VELO_DISPATCH_HIERARCHICAL && !link.hosts().empty();
    if (link.size() > 1 && !link.shows_tensors() &&
        (gathers || passes || link.relay_slot_bytes() > 0))
      exchange_order(function, *routes, link, on);
    if (passes) exchange_passed(function, *routes, link, on);
  });
  // Here, since all ranks find the same: none has to end the group for the others.
  if (beyond != row_routes::no_expert)
    core::fail(VELO_ERR_ARGUMENT, "desc.batch_group",
               "all ranks of the dispatcher's group, whose experts share a capacity",
               core::concat("others: expert ", beyond, " has more rows than its capacity"));
}

void submit(core::stream& on, const choice_limitation& what) {
  submit_in_order(on, what);
}
void submit(core::stream& on, const choice_exchange& what) {
  submit_in_order(on, what);
}

}  // namespace velo::sched
