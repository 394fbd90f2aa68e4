// A group over one link.
#include "comm/transport/mpi/mpi.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "comm/transport/mpi/hosts.hpp"
#include "comm/transport/mpi/messages.hpp"
#include "comm/transport/round.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

class mpi_transport final : public transport {
 public:
  explicit mpi_transport(const mpi_link::setting& set)
      : link_(set), hosts_(link_, set.buffer), messages_(link_) {}
  ~mpi_transport() override {
    try {
      messages_.finish();
    } catch (...) {  // the group has ended
    }
    messages_.abandon();
  }

  velo_transport kind() const noexcept override { return VELO_TRANSPORT_MPI; }
  int rank() const noexcept override { return link_.rank(); }
  int size() const noexcept override { return link_.size(); }

  std::vector<int> hosts() const override {
    std::vector<int> all;
    const host_order& order = hosts_.order();
    for (int rank = 0; order.hosts().size() > 1 && rank < size(); ++rank)
      all.push_back(static_cast<int>(order.host_of(rank)));
    return all;
  }

  void run(const operation& what, core::execution& state) override {
    link_.raise_if_failed();
    mpi_round round(link_, hosts_.order(), what, state, begun_.load(std::memory_order_relaxed) + 1);
    begun_.fetch_add(1, std::memory_order_relaxed);
    if (!hosts_.carry_out(round)) comm::carry_out(round, what.traits());
    done_.store(begun_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  void run_messages(const message_batch& what, core::execution&) override {
    link_.raise_if_failed();
    messages_.run(what);
  }
  void explain_messages(const message_batch& what, explanation& to) const override {
    const std::int64_t room = link_.slot_bytes() - 64;
    to.consider("slots", true, "messages of MPI from and into the group's memory");
    to.take_steps(core::ceil_div(what.longest(), room), room);
  }
  void explain(const operation& what, explanation& to) const override {
    const std::int64_t slot = link_.slot_bytes();
    hosts_.explain(what, to);
    std::int64_t most = std::max(what.in_bytes(), what.out_bytes());
    if (what.terms.counts != 0)
      most = std::max(
          most, what.pattern(rank(), size()).longest() * std::max(what.in_size(), what.out_size()));
    const bool fits = most <= mpi_round::room;
    to.consider("opening", fits,
                std::to_string(most) + (fits ? " bytes travel" : " bytes do not fit") +
                    " with the message that begins an operation, up to " +
                    std::to_string(mpi_round::room));
    to.consider("rank to rank", true, "slots from each rank to each, which MPI carries");
    if (!to.is_chosen("opening")) to.take_steps(core::ceil_div(most, slot), slot);
  }
  void fail(const fault& why) noexcept override {
    fault first = why;  // replaced by an earlier fault, if there is one
    link_.end(why);
    link_.failed(first);
    hosts_.fail(first);
  }
  bool failed(fault& why) const noexcept override { return link_.failed(why); }
  wait_board make_wait_board() const override { return link_.make_wait_board(); }
  void note_waits_on(const wait_board& on) override { link_.note_waits_on(on); }

  std::unique_ptr<transport> subgroup(const subgroup_terms& of) override {
    return std::make_unique<mpi_transport>(link_.part(of));
  }

  // The transport knows only which other ranks have left.
  void describe(core::json_writer& to) const override {
    for (int one = 0; one < size(); ++one) {
      to.object().member("rank", one);
      if (one == rank()) {
        to.member("completed", done_.load(std::memory_order_acquire));
        to.member("arrived", begun_.load(std::memory_order_relaxed));
      }
      to.member("left", link_.has_left(one)).end();
    }
  }

 private:
  mpi_link link_;
  mpi_hosts hosts_;
  mpi_messages messages_;
  std::atomic<std::uint64_t> begun_{0}, done_{0};
};

}  // namespace

std::unique_ptr<transport> make_mpi(const mpi_job& job) {
  auto progress = mpi_progress::open(job.folders, job.communicator, job.timeout_ns);
  if (progress->size() > most_ranks)
    core::fail(VELO_ERR_UNSUPPORTED, "desc.communicator",
               core::text("at most %d ranks", most_ranks), core::text("%d", progress->size()));
  return std::make_unique<mpi_transport>(
      mpi_link::setting{std::move(progress), job.timeout_ns, job.buffer, {}});
}

}  // namespace velo::comm
