// The messages between ranks about a step, and the decisions that follow from them.
#include "sched/executor/step_validation.hpp"

#include <cstring>
#include <limits>

#include "core/handle/host_call.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"
#include "core/index.hpp"

namespace velo::sched {

using core::fail;
using core::text;

namespace {

// Calls a function of the host. who: the caller, for the failure record.
template <class Call, class Caller>
void call(const char* field, Call&& function, Caller&& caller) {
  const std::uint32_t before = core::records_written();
  const velo_status status = core::call_host(field, function);
  if (status != VELO_OK) core::fail_returned(field, status, caller(), before);
}
template <class Call>
void call(const char* field, std::int32_t rank, Call&& function) {
  call(field, function, [rank] { return text("rank %d", rank); });
}

std::uint64_t bits_of(double number) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}
bool same_bits(double a, double b) {
  return bits_of(a) == bits_of(b);
}

// The OPTIMIZER actions at the end of the row.
std::vector<action> updates_of(const schedule& pipeline, std::int32_t rank) {
  std::vector<action> found;
  for (row_reader row(pipeline, rank); !row.done(); row.pass()) {
    const action& a = row.next();
    if (a.kind == VELO_ACTION_OPTIMIZER)
      found.push_back(a);
    else if (!found.empty())
      fail(VELO_ERR_ARGUMENT, "schedule", "rows with nothing behind OPTIMIZER",
           text("%s of rank %d", text_of(a).c_str(), rank));
  }
  if (found.empty())
    fail(VELO_ERR_ARGUMENT, "schedule", "rows that end with OPTIMIZER",
         text("none in that of rank %d", rank));
  return found;
}

}  // namespace

step_validation::step_validation(const velo_executor_validation& desc, void* user,
                                 const schedule& pipeline, std::int32_t rank)
    : desc_(desc),
      user_(user),
      rank_(rank),
      ranks_(pipeline.sizes().ranks),
      ahead_(ahead_of(pipeline, rank)),
      taken_(static_cast<std::size_t>(ranks_)),
      states_(static_cast<std::size_t>(ranks_) * desc.state_size) {
  for (std::int32_t each = 0; each < ranks_; ++each) {
    std::vector<action> its = updates_of(pipeline, each);
    if (each == rank) updates_ = std::move(its);
  }
}

void step_validation::update(const action& a, core::stream& on, stage_channel& by) {
  if (!pending_) measure(on, by);
  const double factor = taken_[core::at(rank_)];
  if (!undecided(factor) && factor != 0) step(a, factor, rank_ == ranks_ - 1, on);
}

void step_validation::measure(core::stream& on, stage_channel& by) {
  unsigned char* const mine = &states_[core::at(rank_) * desc_.state_size];
  call("desc.validation.measure", rank_,
       [&] { return desc_.measure(user_, core::handle_of(on), mine); });
  if (rank_ > 0) receive(rank_ - 1, rank_, by);
  taken_[core::at(rank_)] = decide(rank_ + 1);
  if (rank_ < ranks_ - 1) send(rank_ + 1, rank_ + 1, by);
  pending_ = true;
}

bool step_validation::settle(core::stream& on, stage_channel& by) {
  if (rank_ < ranks_ - 1) receive(rank_ + 1, ranks_, by);
  if (rank_ > 0) send(rank_ - 1, ranks_, by);
  const double right = decide(ranks_);
  bool stood = true;
  for (const double each : taken_) stood = stood && same_bits(each, right);
  if (!same_bits(taken_[core::at(rank_)], right)) amend(right, on);
  pending_ = false;
  ++stats_.steps;
  stats_.repeated += stood ? 0 : 1;
  stats_.skipped += right == 0 ? 1 : 0;
  return !stood;
}

void step_validation::forget() {
  if (desc_.forget == nullptr) return;
  call("desc.validation.forget", rank_, [&] { return desc_.forget(user_); });
}

void step_validation::amend(double right, core::stream& on) {
  const double mine = taken_[core::at(rank_)];
  if (undecided(mine)) {
    ++stats_.deferred;
  } else if (mine != 0) {
    call("desc.validation.rollback", rank_,
         [&] { return desc_.rollback(user_, core::handle_of(on)); });
    ++stats_.rolled_back;
  }
  if (right == 0) return;
  for (const action& a : updates_) step(a, right, true, on);
}

void step_validation::step(const action& a, double factor, bool final, core::stream& on) {
  call(
      "desc.validation.step",
      [&] { return desc_.step(user_, core::handle_of(on), &a, factor, final ? 1 : 0); },
      [&] { return text("%s of rank %d", text_of(a).c_str(), rank_); });
}

double step_validation::decide(std::int32_t known) {
  double factor = std::numeric_limits<double>::quiet_NaN();
  call("desc.validation.decide", rank_,
       [&] { return desc_.decide(user_, states_.data(), known, ranks_, &factor); });
  if (known == ranks_ && undecided(factor))
    fail(VELO_ERR_FOREIGN, "desc.validation.decide", "a number once all ranks are known", "NaN");
  return factor;
}

void step_validation::send(std::int32_t to, std::int32_t count, stage_channel& by) {
  const auto ranks = static_cast<std::uint64_t>(count);
  by.send_bytes(to, taken_.data(), ranks * sizeof(double));
  by.send_bytes(to, states_.data(), ranks * desc_.state_size);
}

void step_validation::receive(std::int32_t from, std::int32_t count, stage_channel& by) {
  const auto ranks = static_cast<std::uint64_t>(count);
  by.receive_bytes(from, taken_.data(), ranks * sizeof(double));
  by.receive_bytes(from, states_.data(), ranks * desc_.state_size);
}

}  // namespace velo::sched
