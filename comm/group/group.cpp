// The order of calls, the end of a call, and the description of a group.
#include "comm/group/group.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "comm/group/planned.hpp"
#include "comm/transport/self/self.hpp"
#include "comm/transport/shared/rank_context.hpp"
#include "core/checksum.hpp"
#include "core/context.hpp"
#include "core/index.hpp"
#include "core/text/json_writer.hpp"

namespace velo::comm {
namespace {

constexpr std::chrono::milliseconds poll_interval{50};  // between checks for the group's end

constexpr const char* kinds_of_fault[] = {"none",     "late",    "ended", "left",   "aborted",
                                          "disagree", "dropped", "host",  "differ", "corrupt"};

// Whether the operation gives all ranks the same bits.
bool leaves_the_same(const collective_traits& traits) {
  const bool is_for_all = traits.root == root_role::none || traits.root == root_role::gives;
  return traits.in == layout::whole && is_for_all;
}

// A checksum of the bits that are equal on all ranks, without the gaps between blocks.
std::uint64_t result_of(const operation& what) {
  const char* out = static_cast<const char*>(what.out);
  const auto size = static_cast<std::size_t>(what.out_size());
  if (what.out_blocks.empty())
    return core::checksum(out, static_cast<std::size_t>(what.out_count) * size);
  std::uint64_t all = 0;
  for (const block& one : what.out_blocks)
    all = all * 1000003 + core::checksum(out + static_cast<std::size_t>(one.begin) * size,
                                         static_cast<std::size_t>(one.count) * size);
  return all;
}

bool works_on_numbers(const operation& what) {
  return what.reduces();
}
bool works_on_numbers(const message_batch&) {
  return false;
}
bool works_on_numbers(const planned_call& what) {
  return std::visit([](const auto& one) { return works_on_numbers(one); }, what);
}

}  // namespace

// A call in the queue of a stream.
template <class What>
struct group::queued_call final : core::work {
  queued_call(group& home, const What& what) : work(core::demand::waits), home(home), what(what) {
    function = what.function;
  }

  void run(core::execution& state) override {
    home.serve(place, what,
               [&](transport& link, core::arena&) { home.carry_out(place, what, link, state); });
  }
  void skip() noexcept override { home.drop(place, what); }

  group& home;
  const What what;
  ticket place;
};

struct group::repeated_call final : core::work {
  repeated_call(group& home, std::shared_ptr<planned_operation> given)
      : work(core::demand::waits), home(home), plan(std::move(given)) {
    function = plan->about.function;
  }

  void run(core::execution& state) override {
    home.serve(place, plan->about, [&](transport& link, core::arena&) {
      home.carry_out_again(place, *plan, link, state);
    });
  }
  void skip() noexcept override { home.drop(place, plan->about); }

  group& home;
  const std::shared_ptr<planned_operation> plan;
  ticket place;
};

group::group(core::context& owner, std::unique_ptr<transport> link, group_settings set,
             const group_ties& of_part)
    : owner_(owner),
      link_(std::move(link)),
      set_(std::move(set)),
      met_(of_part.met),
      waits_(met_.is_of_part() ? of_part.waits : link_->make_wait_board()),
      scratch_(owner.memory()) {
  waits_.set_label(fault_label());
  link_->note_waits_on(waits_);
}

group::~group() {
  {
    std::unique_lock<std::mutex> lock(lock_);
    ++awaiting_;
    moved_.wait(lock, [this] { return passed_ == called_; });
  }
  try {
    link_->conclude();
  } catch (...) {  // other ranks get the fault; here no caller is left to receive it
    const core::failure why = core::current_failure();
    owner_.log().write(VELO_LOG_WARN, "group", "ended as it was destroyed: expected %s, got %s",
                       why.expected, why.got);
  }
}

velo_group group::handle() const noexcept {
  return core::handle_of(*this);
}

void group::meet(const fault& known) const noexcept {
  if (met_.meet(known, fault_label())) waits_.meet(known);
}

// The name of the group in faults; empty for an outermost group without a label of its own.
const char* group::fault_label() const noexcept {
  return met_.is_of_part() || set_.label != group_settings::no_label ? set_.label.c_str() : "";
}

void group::forget_met() const noexcept {
  met_.forget();
  waits_.forget();
}

void group::raise_if_ended() const {
  if (!link_->has_failed()) return;
  fault known;
  link_->failed(known);
  meet(known);
  met_.outermost(known, fault_label()).raise();
}

namespace {

// Whether a failure is the record of a fault, as a transport raises it.
bool is_record_of(const core::failure& of, const fault& why) {
  core::failure record;
  core::copy_text(record.expected, sizeof record.expected, why.expected().c_str());
  return of.code == VELO_ERR_PEER && std::strcmp(of.argument, "group") == 0 &&
         std::strcmp(of.expected, record.expected) == 0;
}

}  // namespace

// Notes the fault of a group that has ended, and names its ranks as the outermost group does. A
// whole group adds its label to its own fault alone: a call's failure that names an argument, or
// the fault of another group in which the call runs, too, says more.
void group::rethrow() const {
  fault known;
  if (!link_->failed(known)) throw;
  meet(known);
  const core::failure now = core::current_failure();
  const bool replaces = met_.is_of_part() ? now.code == VELO_ERR_PEER : is_record_of(now, known);
  if (fault_label()[0] != 0 && replaces) met_.outermost(known, fault_label()).raise();
  throw;
}

// An inline call made inside another call of the group, as from a custom reduction, would deadlock:
// it would wait for the outer call, which waits for it.
void group::require_not_carrying(const core::inside_scope& here) const {
  if (here.has(handle(), core::part::carries))
    core::fail(VELO_ERR_STATE, "group", "a call from outside of the group's calls",
               "one from a function that a call of the group runs");
}

// An inline call waits for the queued calls before it.
void group::require_can_wait_for_queued() const {
  if (!queues_.empty()) owner_.require_can_wait("group");
}

// Does enter() and serve() in one step, for a caller whose inside_scope has already found the
// thread's list of objects in use.
template <class Count, class Body>
void group::carry_out_inline(const core::inside_scope& here, core::stream& on, const request& what,
                             Count&& count, Body&& body) {
  require_not_carrying(here);
  ticket place;
  number_in_order(on, place, what, count);
  here.add(handle(), core::part::carries);
  carry_out_in_turn(place, what, [&](transport& link, core::arena&) { body(place, link); });
}

template <class What>
void group::submit_any(const core::inside_scope& here, core::stream& on, const What& what) {
  admit(what);
  on.call(
      {core::demand::waits, works_on_numbers(what)},
      [&](core::execution& state) {
        carry_out_inline(
            here, on, what, [] {},
            [&](const ticket& place, transport& link) { carry_out(place, what, link, state); });
      },
      [&] { return on.make<queued_call<What>>(*this, what); },
      [&](queued_call<What>& piece, auto&& enqueue) { enter(on, piece.place, what, enqueue); });
}

void group::submit(const core::inside_scope& here, core::stream& on, const operation& what) {
  submit_any(here, on, what);
}

void group::submit(const core::inside_scope& here, core::stream& on, const message_batch& what) {
  submit_any(here, on, what);
}

void group::start(const core::inside_scope& here, core::stream& on,
                  const std::shared_ptr<planned_operation>& plan) {
  const request& what = plan->about;
  const auto count = [&] {
    plan->started.store(plan->started.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
  };
  on.call(
      {core::demand::waits, works_on_numbers(plan->what)},
      [&](core::execution& state) {
        carry_out_inline(here, on, what, count, [&](const ticket& place, transport& link) {
          carry_out_again(place, *plan, link, state);
        });
      },
      [&] { return on.make<repeated_call>(*this, plan); },
      [&](repeated_call& piece, auto&& enqueue) {
        enter(on, piece.place, what, [&] {
          enqueue();
          count();
        });
      });
}

void group::carry_out_again(const ticket& place, planned_operation& plan, transport& link,
                            core::execution& state) {
  const core::scratch_reset after{plan.scratch};
  core::execution own{state.context, state.stream,       state.threads, plan.scratch,
                      state.isa,     state.optimization, state.caches};
  if (const auto* what = std::get_if<operation>(&plan.what))
    return carry_out(place, *what, link, own);
  const auto& batch = *std::get_if<message_batch>(&plan.what);
  batch.restart();
  carry_out(place, batch, link, own);
}

void group::admit(const message_batch& what) const {
  if (own_messages::has_others(what, rank())) link_->require_messages();
}

void group::carry_out(const ticket& place, const operation& what, transport& link,
                      core::execution& state) {
  link.run(what, state);
  if (set_.verifies && size() > 1 && leaves_the_same(what.traits()))
    verify(place, what, link, state);
}

// The messages of this rank to itself come first, since they wait for no peer.
void group::carry_out(const ticket&, const message_batch& what, transport& link,
                      core::execution& state) {
  if (!own_messages::has(what, rank())) return link.run_messages(what, state);
  raise_if_ended();
  try {
    own_.run(what, rank());
  } catch (const fault& why) {
    link.fail(why);
    why.raise();
  }
  if (!own_messages::has_others(what, rank()) && what.awaited != awaited::all) return;
  message_batch others = what;
  const auto is_own = [this](const message& one) { return one.peer == rank(); };
  others.messages.erase(std::remove_if(others.messages.begin(), others.messages.end(), is_own),
                        others.messages.end());
  link.run_messages(others, state);
}

// The majority's bits count as correct; on a tie, those of the lowest rank.
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
  compared.terms.count = 1;
  compared.set_count(1);
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
    if (all[core::at(rank)] != right) why.culprits.add(rank);
  link.fail(why);
  raise_if_ended();
}

std::unique_ptr<transport> group::part(const subgroup_terms& of) {
  raise_if_ended();
  if (owner_.working_here() || owner_.holds_up_others())
    core::fail(VELO_ERR_STATE, "parent", "a call that is not the work of its context",
               "one that others may wait for");
  request what;
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
  forget_met();
  return made;
}

group::ticket group::number(const request& what) {
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
  auto made = size() == 1 ? std::make_unique<self_transport>() : link_->shrink(of);
  forget_met();
  return made;
}

void group::drop(const ticket& place, const request& what) noexcept {
  tell_peers(what, "a failure of its stream before");
  finish(place, ending::dropped);
}

void group::drop_failed(const ticket& place, const request& what) noexcept {
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

void group::fail(const request& what) noexcept {
  tell_peers(what, core::current_failure().cause);
}

// Reserves memory for one more call, whose end must not fail.
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
    moved_.wait_for(lock, poll_interval);
    --awaiting_;
  }
  past_.begin(number);
}

// Calls begin in order, but may be dropped in any order.
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

void group::report(core::profile_event call) noexcept {
  if (call.begin == 0) return;
  if (!owner_.profile().has_work()) call.bytes = 0;
  core::copy_text(call.text, sizeof call.text, set_.label.c_str());
  owner_.profile().add(call);
}

void group::finish(const ticket& place, ending how) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  past_.end(place.number, how);
  if (owner_.profile().is_on()) report(past_.event_of(place.number));
  pass(place.number);
  if (place.queue != nullptr) queues_.erase(std::find(queues_.begin(), queues_.end(), place.queue));
  if (awaiting_ > 0) moved_.notify_all();
}

// Ends the group, unless it has ended, because this rank does not take part in a call. If the call
// concerns no other rank, the group goes on.
void group::tell_peers(const request& what, const char* cause) noexcept {
  if (size() == 1 || what.is_local()) return;
  fault why;
  why.kind = fault::how::dropped;
  why.terms = what.terms;
  why.culprits.add(rank());
  core::copy_text(why.cause, sizeof why.cause, cause);
  end(why);
}

void group::abort(const char* cause) noexcept {
  fault why;
  why.kind = fault::how::aborted;
  why.culprits.add(rank());
  core::copy_text(why.cause, sizeof why.cause, cause);
  end(why);
}

// Ends the group for the fault that this rank has met before in a group or part, if any.
void group::end(const fault& why) noexcept {
  fault known;
  link_->fail(met_.get(known) ? known : why);  // also ends what the group works in, if it has ended
  if (link_->failed(known)) meet(known);
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
  std::string all;
  core::json_writer to(all);
  to.object().member("group", set_.label).member("transport", name_of(info.transport));
  to.member("rank", info.rank).member("size", info.size).member("timeout_ns", timeout_ns());
  to.member("called", info.called).member("finished", info.finished);
  to.member("in_place", link_->in_place()).key("fault");
  fault known;
  if (link_->failed(known)) {
    const std::uint64_t bits = std::uint64_t{known.terms.in_bits} * known.terms.count;
    to.object().member("what", kinds_of_fault[static_cast<int>(known.kind)]);
    to.member("operation", known.terms.kind.name()).member("sequence", known.sequence);
    to.member("bytes", bits / 8).key("ranks").array();
    for (int rank = 0; rank < info.size; ++rank)
      if (known.culprits.has(rank)) to.value(rank);
    to.end().member("expected", known.expected()).member("got", known.got());
    to.member("cause", known.cause).end();
  } else {
    to.null();
  }
  to.key("ranks").array();
  link_->describe(to);
  to.end().end();
  return all;
}

std::string group::history() const {
  std::string all;
  core::json_writer to(all);
  to.object().member("group", set_.label).member("rank", rank()).member("size", size());
  to.key("operations");
  const std::lock_guard<std::mutex> lock(lock_);
  past_.write(to);
  to.end();
  return all;
}

}  // namespace velo::comm
