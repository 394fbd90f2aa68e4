// The order of calls, how a call ends, and what a group tells of itself.
#include "comm/group/group.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "comm/group/planned.hpp"
#include "comm/transport/self/self.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "core/checksum.hpp"
#include "core/context.hpp"
#include "core/text/json.hpp"

namespace velo::comm {
namespace {

constexpr std::chrono::milliseconds glance{50};  // between looks at whether the group has ended

constexpr const char* transports[] = {"auto", "self", "local", "shm", "mpi", "host"};
constexpr const char* kinds_of_fault[] = {"none",     "late",    "ended", "left",   "aborted",
                                          "disagree", "dropped", "host",  "differ", "corrupt"};

bool leaves_the_same(collective kind) {
  return kind == collective::all_reduce || kind == collective::broadcast ||
         kind == collective::all_gather;
}

// Of what all ranks have alike: not of what is between the parts.
std::uint64_t result_of(const operation& what) {
  const char* out = static_cast<const char*>(what.out);
  const auto size = static_cast<std::size_t>(what.out_size());
  if (what.out_parts.empty())
    return core::checksum(out, static_cast<std::size_t>(what.out_count) * size);
  std::uint64_t all = 0;
  for (const comm::part& one : what.out_parts)
    all = all * 1000003 + core::checksum(out + static_cast<std::size_t>(one.begin) * size,
                                         static_cast<std::size_t>(one.count) * size);
  return all;
}

}  // namespace

const char* name_of(velo_transport kind) noexcept {
  return transports[kind];
}

// A collective in the queue of a stream.
struct group::call final : core::work {
  call(group& home, const operation& what) : work(core::demand::waits), home(home), what(what) {
    function = what.function;
  }

  void run(core::execution& state) override {
    home.serve(place, what,
               [&](transport& link, core::arena&) { home.carry_out(place, what, link, state); });
  }
  void skip() noexcept override { home.drop(place, what); }

  group& home;
  const operation what;
  ticket place;
};

struct group::repeated_call final : core::work {
  repeated_call(group& home, std::shared_ptr<planned_operation> given)
      : work(core::demand::waits), home(home), plan(std::move(given)) {
    function = plan->what.function;
  }

  void run(core::execution& state) override {
    home.serve(place, plan->what, [&](transport& link, core::arena&) {
      home.carry_out_again(place, *plan, link, state);
    });
  }
  void skip() noexcept override { home.drop(place, plan->what); }

  group& home;
  const std::shared_ptr<planned_operation> plan;
  ticket place;
};

group::group(core::context& owner, std::unique_ptr<transport> link, group_settings set)
    : owner_(owner), link_(std::move(link)), set_(std::move(set)), scratch_(owner.memory()) {}

group::~group() {
  {
    std::unique_lock<std::mutex> lock(lock_);
    ++awaiting_;
    moved_.wait(lock, [this] { return passed_ == called_; });
  }
  try {
    link_->conclude();
  } catch (...) {  // the others are told; here no call is left that could fail
    const core::failure why = core::current_failure();
    owner_.log().write(VELO_LOG_WARN, "group", "ended as it was destroyed: expected %s, got %s",
                       why.expected, why.got);
  }
}

velo_group group::handle() const noexcept {
  return core::handle_of(*this);
}

void group::raise_if_ended() const {
  if (!link_->has_failed()) return;
  fault known;
  link_->failed(known);
  known.raise();
}

// A call that is finished when it returns would wait for the one around it.
void group::require_not_carrying(const core::inside_scope& here) const {
  if (here.has(handle(), core::part::carries))
    core::fail(VELO_ERR_STATE, "group", "a call from outside of the group's calls",
               "one from a function that a call of the group runs");
}

// An inline call waits for the queued ones before it.
void group::require_can_wait_for_queued() const {
  if (!queues_.empty()) owner_.require_can_wait("group");
}

// enter and serve in one, for a scope that has found the thread's list of objects in use.
template <class Count, class Body>
void group::run_inline(const core::inside_scope& here, core::stream& on, const operation& what,
                       Count&& count, Body&& body) {
  on.run_waiting(
      [&](core::execution& state) {
        require_not_carrying(here);
        ticket place;
        number_in_order(on, place, what, count);
        here.add(handle(), core::part::carries);
        carry_out_in_turn(place, what,
                          [&](transport& link, core::arena&) { body(place, link, state); });
      },
      what.reduces());
}

void group::submit(const core::inside_scope& here, core::stream& on, const operation& what) {
  admit(what);
  if (on.is_inline())
    return run_inline(
        here, on, what, [] {},
        [&](const ticket& place, transport& link, core::execution& state) {
          carry_out(place, what, link, state);
        });
  core::work_ptr<call> piece = on.make<call>(*this, what);
  ticket& place = piece->place;
  enter(on, place, what, [&] { on.enqueue(std::move(piece)); });
}

void group::start(const core::inside_scope& here, core::stream& on,
                  const std::shared_ptr<planned_operation>& plan) {
  const operation& what = plan->what;
  const auto count = [&] {
    plan->started.store(plan->started.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  };
  if (on.is_inline())
    return run_inline(here, on, what, count,
                      [&](const ticket& place, transport& link, core::execution& state) {
                        carry_out_again(place, *plan, link, state);
                      });
  core::work_ptr<repeated_call> piece = on.make<repeated_call>(*this, plan);
  ticket& place = piece->place;
  enter(on, place, what, [&] {
    on.enqueue(std::move(piece));
    count();
  });
}

void group::carry_out_again(const ticket& place, planned_operation& plan, transport& link,
                            core::execution& state) {
  const scratch_reset after{plan.scratch};
  for (const message& one : plan.what.messages) one.moved = -1;
  core::execution own{state.context, state.stream,       state.threads, plan.scratch,
                      state.isa,     state.optimization, state.caches};
  carry_out(place, plan.what, link, own);
}

void group::admit(const operation& what) const {
  if (what.messages.empty() || own_messages::has_others(what, rank())) link_->admit(what);
}

void group::carry_out(const ticket& place, const operation& what, transport& link,
                      core::execution& state) {
  if (!what.messages.empty() && own_messages::has(what, rank()))
    return carry_own(what, link, state);
  link.run(what, state);
  if (set_.verifies && size() > 1 && leaves_the_same(what.terms.kind))
    verify(place, what, link, state);
}

// The messages of this rank to itself, which wait for nobody, then those of others.
void group::carry_own(const operation& what, transport& link, core::execution& state) {
  raise_if_ended();
  try {
    own_.run(what, rank());
  } catch (const fault& why) {
    link.fail(why);
    why.raise();
  }
  if (!own_messages::has_others(what, rank()) && what.awaited != awaited::all) return;
  operation others = what;
  const auto is_own = [this](const message& one) { return one.peer == rank(); };
  others.messages.erase(std::remove_if(others.messages.begin(), others.messages.end(), is_own),
                        others.messages.end());
  link.run(others, state);
}

// Those are right that most are like, of equal numbers those of the lowest rank.
void group::verify(const ticket& place, const operation& what, transport& link,
                   core::execution& state) {
  fault why;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    why.sequence = past_.sequence_of(place.number);
    past_.count_another();
  }
  const std::uint64_t mine = result_of(what);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
  operation compared;
  compared.terms.kind = collective::all_gather;
  compared.terms.in_code = compared.terms.out_code = VELO_DTYPE_UINT;
  compared.terms.in_bits = compared.terms.out_bits = 64;
  compared.terms.count = compared.count = 1;
  compared.in = &mine;
  compared.out = all.data();
  compared.out_count = size();
  compared.function = what.function;
  link.run(compared, state);
  const auto like = [&](std::uint64_t one) { return std::count(all.begin(), all.end(), one); };
  std::uint64_t right = all[0];
  for (const std::uint64_t one : all)
    if (like(one) > like(right)) right = one;
  if (like(right) == size()) return;
  why.kind = fault::how::differ;
  why.terms = what.terms;
  for (int rank = 0; rank < size(); ++rank)
    if (all[static_cast<std::size_t>(rank)] != right) why.culprits.add(rank);
  link.fail(why);
  raise_if_ended();
}

std::unique_ptr<transport> group::part(const subgroup_terms& of) {
  raise_if_ended();
  if (owner_.working_here() || owner_.holds_up_others())
    core::fail(VELO_ERR_STATE, "parent", "a call that is not the work of its context",
               "one that others may wait for");
  operation what;
  what.terms.kind = of.kind;
  what.terms.count = static_cast<std::int64_t>(of.ranks.size());
  const ticket place = number(what);
  std::unique_ptr<transport> made;
  try {
    await_turn(place.number);
    made = of.ranks.size() == 1 ? std::make_unique<self_transport>() : link_->subgroup(of);
  } catch (...) {
    finish(place, ending::failed);
    throw;
  }
  finish(place, ending::done);
  return made;
}

group::ticket group::number(const operation& what) {
  const std::lock_guard<std::mutex> lock(lock_);
  make_room();
  past_.call(++called_, what);
  return {called_, nullptr, false};
}

std::unique_ptr<transport> group::shrink(const subgroup_terms& of) {
  fault known;
  if (!link_->failed(known))
    core::fail(VELO_ERR_STATE, "group", "a group that has ended", "one that works");
  require_not_carrying(core::inside_scope());
  return size() == 1 ? std::make_unique<self_transport>() : link_->shrink(of);
}

void group::drop(const ticket& place, const operation& what) noexcept {
  tell_peers(what, "a failure of its stream before");
  finish(place, ending::dropped);
}

void group::drop_failed(const ticket& place, const operation& what) noexcept {
  fail(what);
  finish(place, ending::dropped);
}

void group::rethrow_for_both(const side& first, const side& second) {
  const auto ended = [](const side& one) { return one.in != nullptr && one.in->has_ended(); };
  const bool has_first = ended(first), has_second = ended(second);
  const auto miss = [](const side& one) {
    if (one.in != nullptr) one.in->tell_peers(one.what, "another group has ended");
  };
  if (has_first) miss(second);
  if (has_second) miss(first);
  if (core::current_failure().code == VELO_ERR_PEER) {
    if (has_first) first.in->raise_if_ended();
    if (has_second) second.in->raise_if_ended();
  }
  throw;
}

void group::fail(const operation& what) noexcept {
  tell_peers(what, core::current_failure().cause);
}

// For one more call, whose end cannot fail.
void group::make_room() {
  const std::size_t open = called_ - passed_;
  if (early_.capacity() < open) early_.reserve(2 * open);
}

void group::begin_if_free(ticket& place) noexcept {
  if (passed_ != place.number - 1) return;
  place.begun = true;
  past_.begin(place.number);
}

void group::await_turn(std::uint64_t number) {
  std::unique_lock<std::mutex> lock(lock_);
  while (passed_ != number - 1) {
    raise_if_ended();
    ++awaiting_;
    moved_.wait_for(lock, glance);
    --awaiting_;
  }
  past_.begin(number);
}

// Calls have their turns in order, but are dropped in any.
void group::pass(std::uint64_t number) noexcept {
  if (number != passed_ + 1) return early_.push_back(number);
  ++passed_;
  while (!early_.empty()) {
    const auto next = std::find(early_.begin(), early_.end(), passed_ + 1);
    if (next == early_.end()) return;
    early_.erase(next);
    ++passed_;
  }
}

void group::finish(const ticket& place, ending how) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  past_.end(place.number, how);
  pass(place.number);
  if (place.queue != nullptr) queues_.erase(std::find(queues_.begin(), queues_.end(), place.queue));
  if (awaiting_ > 0) moved_.notify_all();
}

// That this rank does not take part in an operation, unless the group has ended anyway. A rank
// alone, or with messages to itself alone, has nobody to tell, and goes on.
void group::tell_peers(const operation& what, const char* cause) noexcept {
  const bool is_own = !what.messages.empty() && !own_messages::has_others(what, rank());
  if (size() == 1 || is_own) return;
  fault why;
  why.kind = fault::how::dropped;
  why.terms = what.terms;
  why.culprits.add(rank());
  core::copy_text(why.cause, sizeof why.cause, cause);
  link_->fail(why);
}

void group::abort(const char* cause) noexcept {
  fault why;
  why.kind = fault::how::aborted;
  why.culprits.add(rank());
  core::copy_text(why.cause, sizeof why.cause, cause);
  link_->fail(why);
}

bool group::is_waited_for_here() const {
  const std::lock_guard<std::mutex> lock(lock_);
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const core::stream* one) { return one->is_worker(); });
}

void group::fill(velo_group_info& info) const noexcept {
  fault known;
  info.transport = link_->kind();
  info.rank = rank();
  info.size = size();
  info.failed = link_->failed(known) ? 1 : 0;
  info.timeout_ns = timeout_ns();
  const std::lock_guard<std::mutex> lock(lock_);
  info.called = called_;
  info.finished = passed_ + early_.size();
}

std::string group::describe() const {
  velo_group_info info{};
  fill(info);
  std::string all = "{\"group\":";
  core::append_json_string(all, set_.label.c_str());
  all += std::string(",\"transport\":\"") + name_of(info.transport) + "\"";
  all += ",\"rank\":" + std::to_string(info.rank) + ",\"size\":" + std::to_string(info.size);
  all += ",\"timeout_ns\":" + std::to_string(timeout_ns());
  all += ",\"called\":" + std::to_string(info.called);
  all += ",\"finished\":" + std::to_string(info.finished);
  all += ",\"in_place\":" + std::to_string(link_->in_place()) + ",\"fault\":";
  fault known;
  if (link_->failed(known)) {
    const std::uint64_t bits = std::uint64_t{known.terms.in_bits} * known.terms.count;
    all += std::string("{\"what\":\"") + kinds_of_fault[static_cast<int>(known.kind)] + "\"";
    all += std::string(",\"operation\":\"") + name_of(known.terms.kind) + "\"";
    all += ",\"sequence\":" + std::to_string(known.sequence);
    all += ",\"bytes\":" + std::to_string(bits / 8) + ",\"ranks\":[";
    const char* comma = "";
    for (int rank = 0; rank < info.size; ++rank) {
      if (!known.culprits.has(rank)) continue;
      all += comma + std::to_string(rank);
      comma = ",";
    }
    all += "],\"expected\":";
    core::append_json_string(all, known.expected().c_str());
    all += ",\"got\":";
    core::append_json_string(all, known.got().c_str());
    all += ",\"cause\":";
    core::append_json_string(all, known.cause);
    all += "}";
  } else {
    all += "null";
  }
  all += ",\"ranks\":";
  link_->describe(all);
  return all + "}";
}

std::string group::history() const {
  std::string all = "{\"group\":";
  core::append_json_string(all, set_.label.c_str());
  all += ",\"rank\":" + std::to_string(rank()) + ",\"size\":" + std::to_string(size());
  all += ",\"operations\":";
  const std::lock_guard<std::mutex> lock(lock_);
  past_.append_json(all);
  return all + "}";
}

}  // namespace velo::comm
