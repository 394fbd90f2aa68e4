// A group over one table of host functions: its handshake, its faults and its messages.
#include "comm/transport/host/host.hpp"

#include <atomic>
#include <cstring>
#include <utility>

#include "comm/pattern/slices.hpp"
#include "comm/transport/host/round.hpp"
#include "core/failure.hpp"

namespace velo::comm {
namespace {

// A rank's first message. All fields but `buffer` must be equal on all ranks; rank 0's buffer size
// counts.
struct handshake {
  char release[16] = VELO_RELEASE;
  std::int64_t size = 0, functions = 0, buffer = 0;
};

std::int64_t functions_of(const velo_host_collectives& table) {
  const bool has[] = {table.all_gather != nullptr, table.all_to_all != nullptr,
                      table.broadcast != nullptr, table.all_reduce != nullptr,
                      table.send != nullptr};
  std::int64_t all = 0;
  for (const bool one : has) all = 2 * all + (one ? 1 : 0);
  return all;
}

[[noreturn]] void raise_unconnected(const host_failure& failed_call) {
  core::failure f;
  f.code = VELO_ERR_PEER;
  f.rank = failed_call.late.lowest();
  core::copy_text(f.argument, sizeof f.argument, "group");
  core::copy_text(f.expected, sizeof f.expected, "all ranks of the host");
  core::copy_text(
      f.got, sizeof f.got,
      f.rank < 0 ? "a failure of its functions" : (failed_call.late.text() + " not there").c_str());
  core::copy_text(f.cause, sizeof f.cause, failed_call.text);
  throw f;
}

class host_transport final : public transport {
 public:
  explicit host_transport(const host_job& job)
      : engine_(std::make_shared<host_engine>(job.table, job.rank, job.size, job.timeout_ns)),
        caller_(engine_) {
    engine_->stage(0);
    connect(job.buffer);
  }

  velo_transport kind() const noexcept override { return VELO_TRANSPORT_HOST; }
  int rank() const noexcept override { return engine_->rank; }
  int size() const noexcept override { return engine_->size; }

  void require_messages() const override {
    if (engine_->table.send == nullptr)
      core::fail(VELO_ERR_UNSUPPORTED, "group", "a host with the functions send and receive",
                 "one without");
  }

  void run(const operation& what, core::execution&) override {
    raise_if_failed();
    const std::uint64_t sequence = begun_.fetch_add(1, std::memory_order_relaxed) + 1;
    host_round round(caller_, *engine_, what, sequence);
    carry_out(
        what, sequence, [&] { round.run(); }, [&] { return !round.opened(); });
    done_.store(sequence, std::memory_order_release);
  }

  void run_messages(const message_batch& what, core::execution&) override {
    raise_if_failed();
    exchange(what);
  }

  void explain(const operation& what, explanation& to) const override {
    host_round::explain(*engine_, what, to);
  }
  void explain_messages(const message_batch& what, explanation& to) const override {
    to.consider("messages", true, "the host's send and receive");
    to.take_steps(slices_in(what.longest(), engine_->room()), engine_->room());
  }

  // Announces the fault unless an operation is running, in which the other ranks expect no opening.
  void fail(const fault& why) noexcept override { end(why, !carrying_); }
  bool failed(fault& why) const noexcept override {
    if (!failed_.load(std::memory_order_acquire)) return false;
    const std::lock_guard<std::mutex> lock(lock_);
    why = fault_;
    return true;
  }

  std::unique_ptr<transport> subgroup(const subgroup_terms& of) override {
    raise_if_failed();
    if (engine_->table.part == nullptr)
      core::fail(VELO_ERR_UNSUPPORTED, "parent", "a host with the function part", "one without");
    const std::vector<std::int32_t> ranks(of.ranks.begin(), of.ranks.end());
    const velo_host_collectives none = VELO_HOST_COLLECTIVES_INIT;
    const auto made = std::make_shared<host_table>(none);
    try {
      caller_.run([ranks, made](host_engine& by) { by.make_part(ranks, *made); });
    } catch (const host_failure& failed_call) {
      raise_if_failed();
      const fault why = failed_call.as_fault(rank());
      of.raise(why.kind, why.culprits, why.cause);
    }
    require_functions(made->functions, "part");
    return make_host(
        {made, of.rank, static_cast<int>(of.ranks.size()), of.timeout_ns, of.slot_bytes * 2});
  }

  // The transport knows nothing about the other ranks.
  void describe(core::json_writer& to) const override {
    for (int one = 0; one < size(); ++one) {
      to.object().member("rank", one);
      if (one == rank()) {
        to.member("completed", done_.load(std::memory_order_acquire));
        to.member("arrived", begun_.load(std::memory_order_relaxed));
      }
      to.end();
    }
  }

 private:
  void connect(std::size_t buffer);
  void exchange(const message_batch& what);
  void carry(const message& one);
  template <class Body, class Between>
  void carry_out(const request& what, std::uint64_t sequence, Body&& body, Between&& between);
  void end(const fault& why, bool announces) noexcept;
  void raise_if_failed() const {
    fault known;
    if (failed(known)) known.raise();
  }

  const std::shared_ptr<host_engine> engine_;
  host_caller caller_;
  std::atomic<std::uint64_t> begun_{0}, done_{0};
  mutable std::mutex lock_;  // guards fault_
  fault fault_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> carrying_{false};  // an operation
};

void host_transport::connect(std::size_t buffer) {
  handshake mine;
  mine.size = size();
  mine.functions = functions_of(engine_->table);
  mine.buffer = static_cast<std::int64_t>(buffer);
  try {
    caller_.run([mine](host_engine& with) {
      std::memcpy(with.in(), &mine, sizeof mine);
      with.share(sizeof mine);
    });
  } catch (const host_failure& failed_call) {
    raise_unconnected(failed_call);
  }
  std::int64_t holds = 0;
  for (int one = 0; one < size(); ++one) {
    handshake theirs;
    std::memcpy(&theirs, engine_->out() + one * static_cast<std::int64_t>(sizeof theirs),
                sizeof theirs);
    if (one == 0) holds = theirs.buffer;
    if (std::memcmp(&theirs, &mine, offsetof(handshake, buffer)) != 0)
      core::fail(VELO_ERR_PEER, "group",
                 core::text("velo " VELO_RELEASE ", %d ranks and the same functions", size()),
                 core::text("rank %d with others", one));
  }
  engine_->stage(static_cast<std::size_t>(holds));
  engine_->owned->is_used = true;
}

// body(): runs the operation. between(): whether the other ranks are also about to share an
// opening.
template <class Body, class Between>
void host_transport::carry_out(const request& what, std::uint64_t sequence, Body&& body,
                               Between&& between) {
  carrying_ = true;
  try {
    body();
  } catch (const fault& why) {  // all ranks know it
    end(why, false);
  } catch (const host_failure& failed_call) {
    fault why = failed_call.as_fault(rank());
    why.sequence = sequence;
    why.terms = what.terms;
    why.timeout_ns = engine_->timeout_ns;
    end(why, between());
  }
  carrying_ = false;
  raise_if_failed();
}

// Only the first of several faults counts.
void host_transport::end(const fault& why, bool announces) noexcept {
  host_opening last;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    if (fault_.kind != fault::how::none) return;
    fault_ = why;
    failed_.store(true, std::memory_order_release);
  }
  last.terms = why.terms;
  last.other = why.other;
  last.sequence = why.sequence;
  last.timeout_ns = why.timeout_ns;
  last.ended = why.kind;
  last.culprits = why.culprits;
  core::copy_text(last.cause, sizeof last.cause, why.cause);
  host_caller::work announcement;
  try {
    if (announces)
      announcement = [last](host_engine& with) { host_round::share_opening(with, last); };
  } catch (...) {  // out of memory: the other ranks wait for their timeout
  }
  caller_.end(std::move(announcement), why.cause);
}

void host_transport::exchange(const message_batch& what) {
  const auto carry_all = [&](bool receives) {
    return [&, receives](int peer) {
      for (const message& one : what.messages)
        if (one.peer == peer && one.receives == receives) carry(one);
    };
  };
  const auto all = [&] { engine_->by_pairs(carry_all(false), carry_all(true)); };
  carry_out(what, 0, all, [] { return false; });
}

// Sends or receives one message. Its terms come first, and the receiver compares them.
void host_transport::carry(const message& one) {
  constexpr std::int64_t head = sizeof(terms);
  if (!one.receives) {
    caller_.run([one](host_engine& with) {
      std::memcpy(with.in(), &one.terms, sizeof one.terms);
      with.send(one.peer, head);
    });
  } else {
    caller_.run([peer = one.peer](host_engine& with) { with.receive(peer, head); });
    terms theirs;
    std::memcpy(&theirs, engine_->out(), sizeof theirs);
    if (!one.terms.has_elements_of(theirs)) {
      fault why;
      why.kind = fault::how::disagree;
      why.terms = one.terms;
      why.other = theirs;
      why.culprits.add(one.peer);
      throw why;
    }
  }
  for (std::int64_t begin = 0; begin < one.bytes; begin += engine_->room()) {
    const std::int64_t bytes = std::min(engine_->room(), one.bytes - begin);
    char* at = one.data + begin;
    if (!one.receives) std::memcpy(engine_->in(), at, static_cast<std::size_t>(bytes));
    caller_.run([peer = one.peer, receives = one.receives, bytes](host_engine& with) {
      receives ? with.receive(peer, bytes) : with.send(peer, bytes);
    });
    if (one.receives) std::memcpy(at, engine_->out(), static_cast<std::size_t>(bytes));
  }
}

}  // namespace

std::unique_ptr<transport> make_host(const host_job& job) {
  return std::make_unique<host_transport>(job);
}

}  // namespace velo::comm
