// Messages are numbered: first those that stages receive in the forward pass, by unit, then those
// that they receive in the backward pass.
#include "sched/check/sends.hpp"

#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace velo::sched {
namespace {

bool is_forward(velo_action_kind kind) {
  return kind == VELO_ACTION_SEND_F || kind == VELO_ACTION_RECV_F;
}

// The event at which a send returns.
enum class meaning { at_once, receive, group };
constexpr velo_violation_code code_of(meaning m) {
  return m == meaning::at_once   ? VELO_VIOLATION_STUCK
         : m == meaning::receive ? VELO_VIOLATION_RENDEZVOUS
                                 : VELO_VIOLATION_BATCHED;
}
constexpr const char* clause_of(meaning m) {
  return m == meaning::at_once   ? " waits for a send that never comes"
         : m == meaning::receive ? " waits for ever where a send waits for its receive"
                                 : " waits for ever where neighbors are a group that ends together";
}

struct numbers {
  explicit numbers(const shape& sizes) : sizes(sizes), units(sizes.units()) {}
  // The stages that make and use the contents of a message; -1: none.
  std::int32_t maker(const action& a) const {
    if (is_send(a.kind)) return a.stage;
    if (is_forward(a.kind)) return sizes.begins_chain(a.stage) ? -1 : a.stage - 1;
    return sizes.ends_chain(a.stage) ? -1 : a.stage + 1;
  }
  std::int32_t user(const action& a) const {
    if (!is_send(a.kind)) return a.stage;
    if (is_forward(a.kind)) return sizes.ends_chain(a.stage) ? -1 : a.stage + 1;
    return sizes.begins_chain(a.stage) ? -1 : a.stage - 1;
  }
  std::size_t of(const action& a) const { return of(is_forward(a.kind), user(a), a.microbatch); }
  std::size_t of(bool forward, std::int32_t user, std::int32_t unit) const {
    return static_cast<std::size_t>((forward ? 0 : sizes.cells()) + std::int64_t{user} * units +
                                    unit);
  }
  std::size_t count() const { return static_cast<std::size_t>(2 * sizes.cells()); }

  const shape sizes;
  const std::int32_t units;
};

// Runs the ranks until each waits, and tells where each waits.
class machines {
 public:
  machines(const schedule& pipeline, const numbers& number, meaning of)
      : pipeline_(pipeline), number_(number), meaning_(of), seen_(number.count()) {
    for (std::int32_t rank = 0; rank < pipeline.sizes().ranks; ++rank)
      ranks_.emplace_back(pipeline, rank);
  }

  void run() {
    for (std::int32_t rank = number_.sizes.ranks; rank-- > 0;) runnable_.push_back(rank);
    while (!runnable_.empty()) {
      const std::int32_t rank = runnable_.back();
      runnable_.pop_back();
      ranks_[rank].waits_for = none;
      while (advance(rank)) {
      }
    }
  }
  bool done(std::int32_t rank) const { return ranks_[rank].row.done(); }
  std::int64_t index(std::int32_t rank) const { return ranks_[rank].row.index(); }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  enum : std::uint8_t { sent = 1, received = 2 };  // which sides are posted
  struct machine {
    machine(const schedule& pipeline, std::int32_t rank) : row(pipeline, rank) {}
    row_reader row;                // passes an action once it is done
    std::int64_t announced = 0;    // actions before this index are posted
    std::size_t waits_for = none;  // a message
  };

  // Passes the rank's next action; false at the end, or if the rank waits.
  bool advance(std::int32_t rank) {
    machine& me = ranks_[rank];
    if (me.row.done()) return false;
    const action a = me.row.next();
    if (communicates(a.kind)) {
      announce(rank);
      const std::size_t message = number_.of(a);
      if (!(meaning_ == meaning::at_once && is_send(a.kind)) &&
          seen_[message] != (sent | received)) {
        me.waits_for = message;
        return false;
      }
    }
    me.row.pass();
    return true;
  }

  // Announces the next action to the other ranks; in a group, together with the messages right
  // behind it.
  void announce(std::int32_t rank) {
    machine& me = ranks_[rank];
    const std::int64_t index = me.row.index();
    if (index < me.announced) return;
    const std::int64_t length = pipeline_.length(rank);
    for (me.announced = index; me.announced < length; ++me.announced) {
      action a;
      pipeline_.read(rank, me.announced, 1, &a);
      if (!communicates(a.kind) || (meaning_ != meaning::group && me.announced > index)) return;
      const std::size_t message = number_.of(a);
      seen_[message] |= is_send(a.kind) ? sent : received;
      const std::int32_t other =
          pipeline_.rank_of(is_send(a.kind) ? number_.user(a) : number_.maker(a));
      if (other == rank || ranks_[other].waits_for != message) continue;
      ranks_[other].waits_for = none;
      runnable_.push_back(other);
    }
  }

  const schedule& pipeline_;
  const numbers& number_;
  const meaning meaning_;
  std::vector<std::uint8_t> seen_;  // by message
  std::vector<machine> ranks_;
  std::vector<std::int32_t> runnable_;
};

class checker {
 public:
  checker(const schedule& pipeline, std::size_t most)
      : pipeline_(pipeline),
        number_(pipeline.sizes()),
        most_(most),
        done_(number_.count()),
        send_number_(number_.count()) {}

  std::vector<violation> run() {
    for (std::int32_t rank = 0; rank < number_.sizes.ranks; ++rank) check_row(rank);
    check_complete();
    if (found_.empty()) check_order();
    if (found_.empty())
      for (const meaning m : {meaning::at_once, meaning::receive, meaning::group})
        check_progress(m);
    return std::move(found_);
  }

 private:
  enum : std::uint8_t { result = 1, used = 2, sent = 4, received = 8 };

  void report(velo_violation_code code, std::int32_t rank, std::int64_t index, const action& a,
              std::string reason) {
    if (found_.size() < most_) found_.push_back({code, rank, index, a, std::move(reason)});
  }

  void check_row(std::int32_t rank) {
    for (row_reader row(pipeline_, rank); !row.done(); row.pass()) {
      const action& a = row.next();
      if (communicates(a.kind)) {
        check_message(rank, row.index(), a);
        continue;
      }
      const bool both = a.kind == VELO_ACTION_FB;
      if (has_forward(a.kind)) compute(true, a.stage, a.microbatch);
      if (has_gradient(a.kind))
        compute(false, both ? a.other_stage : a.stage, both ? a.other_microbatch : a.microbatch);
    }
  }
  // Marks the message that an F or I uses and the one that it makes.
  void compute(bool forward, std::int32_t stage, std::int32_t unit) {
    done_[number_.of(forward, stage, unit)] |= used;
    const bool last = forward ? number_.sizes.ends_chain(stage) : number_.sizes.begins_chain(stage);
    if (!last) done_[number_.of(forward, forward ? stage + 1 : stage - 1, unit)] |= result;
  }

  void check_message(std::int32_t rank, std::int64_t at, const action& a) {
    if (pipeline_.rank_of(a.stage) != rank)
      return report(VELO_VIOLATION_PLACEMENT, rank, at, a,
                    text_of(a) + " stands here, but the stage is on rank " +
                        std::to_string(pipeline_.rank_of(a.stage)));
    const std::int32_t maker = number_.maker(a), user = number_.user(a);
    if (maker < 0 || user < 0 || pipeline_.rank_of(maker) == pipeline_.rank_of(user))
      return report(VELO_VIOLATION_MESSAGE, rank, at, a, text_of(a) + " has no other rank");
    std::uint8_t& done = done_[number_.of(a)];
    const std::uint8_t mine = is_send(a.kind) ? sent : received;
    if ((done & mine) != 0)
      return report(VELO_VIOLATION_MESSAGE, rank, at, a, text_of(a) + " has been done before");
    done |= mine;
    if (is_send(a.kind) && (done & result) == 0)
      report(VELO_VIOLATION_ORDER, rank, at, a, text_of(a) + " comes before what makes it");
    if (!is_send(a.kind) && (done & used) != 0)
      report(VELO_VIOLATION_ORDER, rank, at, a, text_of(a) + " comes behind what needs it");
  }

  void check_complete() {
    for (const bool forward : {true, false}) {
      for (std::int32_t user = 0; user < number_.sizes.stages; ++user) {
        const action in = make_action(forward ? VELO_ACTION_RECV_F : VELO_ACTION_RECV_B, user, 0);
        const std::int32_t maker = number_.maker(in);
        if (maker < 0 || pipeline_.rank_of(maker) == pipeline_.rank_of(user)) continue;
        for (std::int32_t unit = 0; unit < number_.units; ++unit) {
          const std::uint8_t done = done_[number_.of(forward, user, unit)];
          if ((done & sent) == 0)
            missing(make_action(forward ? VELO_ACTION_SEND_F : VELO_ACTION_SEND_B, maker, unit));
          if ((done & received) == 0) missing(make_action(in.kind, user, unit));
        }
      }
    }
  }
  void missing(const action& a) {
    report(VELO_VIOLATION_MESSAGE, pipeline_.rank_of(a.stage), -1, a, text_of(a) + " is missing");
  }

  // Numbers the sends between two ranks, and compares the receives.
  void check_order() {
    using rank_pair = std::tuple<std::int32_t, std::int32_t, bool>;  // from, to, forward
    for (const bool sends : {true, false}) {
      std::map<rank_pair, std::int32_t> sends_of;
      for (std::int32_t rank = 0; rank < number_.sizes.ranks; ++rank) {
        for (row_reader row(pipeline_, rank); !row.done(); row.pass()) {
          const action& a = row.next();
          if (!communicates(a.kind) || is_send(a.kind) != sends) continue;
          const rank_pair of{pipeline_.rank_of(number_.maker(a)),
                             pipeline_.rank_of(number_.user(a)), is_forward(a.kind)};
          const std::int32_t number_of_send = sends_of[of]++;
          if (sends)
            send_number_[number_.of(a)] = number_of_send;
          else if (send_number_[number_.of(a)] != number_of_send)
            report(VELO_VIOLATION_FIFO, rank, row.index(), a,
                   text_of(a) + " is received in another order than it is sent");
        }
      }
    }
  }

  void check_progress(meaning m) {
    machines all(pipeline_, number_, m);
    all.run();
    for (std::int32_t rank = 0; rank < number_.sizes.ranks; ++rank) {
      if (all.done(rank)) continue;
      action a;
      pipeline_.read(rank, all.index(rank), 1, &a);
      report(code_of(m), rank, all.index(rank), a, text_of(a) + clause_of(m));
    }
  }

  const schedule& pipeline_;
  const numbers number_;
  const std::size_t most_;
  std::vector<std::uint8_t> done_;         // by message
  std::vector<std::int32_t> send_number_;  // of its send
  std::vector<violation> found_;
};

}  // namespace

std::vector<violation> check_sends(const schedule& pipeline, std::size_t most) {
  return checker(pipeline, most).run();
}

}  // namespace velo::sched
