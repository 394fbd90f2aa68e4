// The calls of dispatchers in the order of their group.
//
// A call is a value with its `function` and its group, `among`; request() says what the ranks must
// agree on, carry_out() does it. An inline stream carries it out at once, a queue later. Cost: a
// copy of the call where it is queued.
#pragma once

#include "comm/group/group.hpp"
#include "core/stream/stream.hpp"

namespace velo::sched {

template <class Call>
struct queued_exchange final : core::work {
  explicit queued_exchange(const Call& given) : work(core::demand::waits), call(given) {
    function = call.function;
  }
  void run(core::execution& state) override { call.carry_out(place, state); }
  void skip() noexcept override { call.among->drop(place, call.request()); }

  const Call call;
  comm::group::ticket place;
};

template <class Call>
void submit_in_order(core::stream& on, const Call& call) {
  const comm::operation request = call.request();
  on.call(
      {core::demand::waits},
      [&](core::execution& state) {
        comm::group::ticket place;
        call.among->enter(on, place, request, [] {});
        call.carry_out(place, state);
      },
      [&] { return on.make<queued_exchange<Call>>(call); },
      [&](queued_exchange<Call>& made, auto&& enqueue) {
        call.among->enter(on, made.place, request, enqueue);
      });
}

}  // namespace velo::sched
