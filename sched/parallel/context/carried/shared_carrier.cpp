// The carrier whose messages are read where they lie: each rank has a table of the stores that it
// sends, and posts one piece of a relay for each step that needs messages. A rank alone has nothing
// to carry.
#include <deque>

#include "sched/overlap/product.hpp"
#include "sched/parallel/context/carried/block_carrier.hpp"

namespace velo::sched {
namespace {

class shared_carrier final : public block_carrier {
 public:
  shared_carrier(const carried_messages& of, comm::operation& what, comm::transport& link,
                 core::execution& on)
      : of_(of), table_(of.pass.messages.size()), needed_(steps_that_need()) {
    what.in = table_.data();
    relay_ = link.begin_relay(what, on);
  }

  void begin(std::int64_t step) override {
    if (step > 0 && !needed_[static_cast<std::size_t>(step)]) return;
    if (is_open_) relay_->release();
    relay_->wait_slot();
    relay_->post();
    relay_->wait_piece();
    is_open_ = true;
  }
  void send(std::size_t message, const row_store& from) override { table_[message] = from; }
  void start_sent() override {}
  // Copies the list of rows, since a failed peer frees its own.
  row_store received(std::size_t message) override {
    const auto from = static_cast<int>(of_.pass.messages[message].from);
    const comm::relay::tensor_access access(*relay_);
    row_store theirs = static_cast<const row_store*>(relay_->peer_tensor(from))[message];
    places_.push_back(*theirs.places);
    theirs.places = &places_.back();
    return theirs;
  }
  void end() override {
    relay_->release();
    relay_->wait_readers();
    relay_->finish();
  }
  void begin_access(access& to) override { to.emplace(*relay_); }

 private:
  std::vector<bool> steps_that_need() const {
    std::vector<bool> all(static_cast<std::size_t>(of_.pass.steps) + 1);
    for (const block_message& m : of_.pass.messages) {
      const auto needed = static_cast<std::size_t>(m.needed);
      all[needed] = true;
      // The memory of sums, parts and rows with statistics is reused after the step that needs
      // them. The piece of the step behind it waits for their readers.
      const bool is_temporary =
          m.what == content::dk || m.what == content::dv || m.part || m.statistics > 0;
      if (needed + 1 < all.size() && is_temporary) all[needed + 1] = true;
    }
    return all;
  }

  const carried_messages of_;
  std::vector<row_store> table_;   // of this rank, by message
  std::deque<row_places> places_;  // of what was received
  const std::vector<bool> needed_;
  std::unique_ptr<comm::relay> relay_;
  bool is_open_ = false;  // a piece is not released
};

class no_carrier final : public block_carrier {
 public:
  void begin(std::int64_t) override {}
  void send(std::size_t, const row_store&) override {}
  void start_sent() override {}
  row_store received(std::size_t) override { return {}; }
  void end() override {}
};

}  // namespace

std::unique_ptr<block_carrier> make_shared_carrier(const carried_messages& of,
                                                   comm::operation& what, comm::transport& link,
                                                   core::execution& on) {
  return std::make_unique<shared_carrier>(of, what, link, on);
}

std::unique_ptr<block_carrier> make_no_carrier() {
  return std::make_unique<no_carrier>();
}

}  // namespace velo::sched
