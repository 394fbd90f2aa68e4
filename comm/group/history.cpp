// Writing records, and reading them.
#include "comm/group/history.hpp"

#include "core/text/json_writer.hpp"

namespace velo::comm {

void history::call(std::uint64_t number, const request& what) noexcept {
  const std::size_t at = (number - 1) % most;
  if (at == 0) {
    earlier_ = later_;
    later_ = core::instant::now(CLOCK_MONOTONIC);
  }
  if (at == records_.size()) records_.emplace_back();
  record& one = records_[at];
  one = record();
  one.number = last_ = number;
  one.terms = what.terms;
  one.bytes = what.bytes;
}

history::record* history::find(std::uint64_t number) noexcept {
  record& one = records_[(number - 1) % most];
  return one.number == number ? &one : nullptr;
}

void history::begin(std::uint64_t number) noexcept {
  record* one = find(number);
  if (one == nullptr) return;
  if (one->begun == 0 && one->terms.kind.is_collective()) one->sequence = ++sequence_;
  one->begun = core::ticks_now();
}

std::uint64_t history::sequence_of(std::uint64_t number) noexcept {
  const record* one = find(number);
  return one != nullptr ? one->sequence : 0;
}

void history::end(std::uint64_t number, ending how) noexcept {
  record* one = find(number);
  if (one == nullptr) return;
  one->ended = core::ticks_now();
  one->how = how;
}

core::profile_event history::event_of(std::uint64_t number) noexcept {
  core::profile_event made;
  const record* one = find(number);
  if (one == nullptr || one->how == ending::dropped) return made;
  made.begin = one->begun;
  made.name = one->terms.kind.name();
  made.kind = one->how == ending::done ? core::profiled::collective : core::profiled::failed;
  made.bytes = static_cast<double>(one->bytes);
  return made;
}

void history::write(core::json_writer& to) const {
  const core::tick_scale times(earlier_, core::instant::now(CLOCK_MONOTONIC));
  const auto ns = [&](std::uint64_t ticks) { return ticks != 0 ? times.at(ticks) : 0; };
  const std::uint64_t first = last_ > most ? last_ - most + 1 : 1;
  to.array();
  for (std::uint64_t number = first; number <= last_; ++number) {
    const record& one = records_[(number - 1) % most];
    const char* state = one.how == ending::done      ? "done"
                        : one.how == ending::failed  ? "failed"
                        : one.how == ending::dropped ? "dropped"
                        : one.begun != 0             ? "begun"
                                                     : "called";
    to.object().member("call", number).key("sequence");
    if (one.sequence > 0)
      to.value(one.sequence);
    else
      to.null();
    to.member("operation", one.terms.text()).member("bytes", one.bytes).member("state", state);
    to.member("begun_ns", ns(one.begun)).member("ended_ns", ns(one.ended)).end();
  }
  to.end();
}

}  // namespace velo::comm
