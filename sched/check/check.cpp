// Records in bits what each stage has done for each unit, then runs the ranks.
#include "sched/check/check.hpp"

#include <utility>

#include "core/index.hpp"
#include "sched/check/sends.hpp"
#include "sched/simulate/in_order.hpp"
#include "sched/simulate/simulate.hpp"

namespace velo::sched {
namespace {

enum : std::uint8_t { did_f = 1, did_i = 2, did_w = 4, did_again = 8, on_host = 16 };
// The state of a stage's parameters.
enum : std::uint8_t { used = 1, gathered = 2, released = 4, updated = 8 };

class checker {
 public:
  explicit checker(const schedule& pipeline)
      : pipeline_(pipeline),
        shape_(pipeline.sizes()),
        units_(shape_.units()),
        done_(static_cast<std::size_t>(shape_.cells())),
        weights_(static_cast<std::size_t>(shape_.stages)),
        parameters_(static_cast<std::size_t>(shape_.stages)),
        shards_(pipeline.has(set_of(VELO_ACTION_UNSHARD) | set_of(VELO_ACTION_RESHARD))) {}

  std::vector<violation> run() {
    for (std::int32_t rank = 0; rank < shape_.ranks && !full(); ++rank) check_row(rank);
    for (std::int32_t stage = 0; stage < shape_.stages && !full(); ++stage) check_complete(stage);
    if (found_.empty()) check_progress();
    if (found_.empty() && messages_) found_ = check_sends(pipeline_, most_violations);
    return std::move(found_);
  }

 private:
  bool full() const { return found_.size() == most_violations; }
  void report(velo_violation_code code, std::int32_t rank, std::int64_t index, const action& a,
              std::string reason) {
    if (!full()) found_.push_back({code, rank, index, a, std::move(reason)});
  }

  void check_row(std::int32_t rank) {
    row_reader row(pipeline_, rank);
    for (; !row.done() && !full(); row.pass()) {
      const action& a = row.next();
      const std::int64_t at = row.index();
      switch (a.kind) {
        case VELO_ACTION_F:
        case VELO_ACTION_I:
        case VELO_ACTION_W:
        case VELO_ACTION_B:
          take(rank, at, a, a.kind, a.stage, a.microbatch);
          break;
        case VELO_ACTION_FB:  // its F must be done before its B
          take(rank, at, a, VELO_ACTION_B, a.other_stage, a.other_microbatch);
          take(rank, at, a, VELO_ACTION_F, a.stage, a.microbatch);
          break;
        case VELO_ACTION_SEND_F:
        case VELO_ACTION_RECV_F:
        case VELO_ACTION_SEND_B:
        case VELO_ACTION_RECV_B:
          messages_ = true;
          break;
        default:
          check_beside(rank, at, a);
      }
    }
  }

  // Checks actions that are neither forward, backward nor messages.
  void check_beside(std::int32_t rank, std::int64_t at, const action& a) {
    if (!is_here(rank, at, a, a.stage, [&] { return text_of(a); })) return;
    if (a.kind == VELO_ACTION_REDUCE_GRAD) return check_reduction(rank, at, a);
    if (a.kind == VELO_ACTION_OPTIMIZER) return check_update(rank, at, a);
    if (a.kind == VELO_ACTION_UNSHARD || a.kind == VELO_ACTION_RESHARD)
      return check_parameters(rank, at, a);
    std::uint8_t& done = done_[core::at(a.stage) * units_ + a.microbatch];
    const bool back = a.kind == VELO_ACTION_RELOAD;
    if (((done & on_host) != 0) != back)
      report(VELO_VIOLATION_OFFLOAD, rank, at, a,
             text_of(a) +
                 (back ? " brings back what is not on the host" : " needs what is on the host"));
    if ((done & did_f) == 0 || (done & did_w) != 0 ||
        (a.kind == VELO_ACTION_RECOMPUTE && (done & did_i) != 0))
      report(VELO_VIOLATION_ORDER, rank, at, a,
             text_of(a) + ((done & did_f) == 0 ? " comes before F" : " comes behind its backward"));
    if (a.kind == VELO_ACTION_RECOMPUTE) {
      if ((done & did_again) != 0)
        report(VELO_VIOLATION_DUPLICATE, rank, at, a, text_of(a) + " has been done before");
      done |= did_again;
    } else if (back) {
      done &= static_cast<std::uint8_t>(~on_host);
    } else {
      done |= on_host;
    }
  }

  template <class Name>
  bool is_here(std::int32_t rank, std::int64_t at, const action& a, std::int32_t stage,
               Name&& name) {
    if (pipeline_.rank_of(stage) == rank) return true;
    report(VELO_VIOLATION_PLACEMENT, rank, at, a,
           name() + " stands here, but the stage is on rank " +
               std::to_string(pipeline_.rank_of(stage)));
    return false;
  }

  // Checks one F, I, W or B of a row, by itself or inside an FB.
  void take(std::int32_t rank, std::int64_t at, const action& a, velo_action_kind kind,
            std::int32_t stage, std::int32_t unit) {
    const auto name = [&] { return text_of(make_action(kind, stage, unit)); };
    if (!is_here(rank, at, a, stage, name)) return;
    if (shards_) use(rank, at, a, stage, name);
    std::uint8_t& done = done_[core::at(stage) * units_ + unit];
    const std::uint8_t makes = kind == VELO_ACTION_F   ? did_f
                               : kind == VELO_ACTION_I ? did_i
                               : kind == VELO_ACTION_W ? did_w
                                                       : did_i | did_w;
    const std::uint8_t needs = kind == VELO_ACTION_F ? 0 : kind == VELO_ACTION_W ? did_i : did_f;
    if ((done & makes) != 0) {
      report(VELO_VIOLATION_DUPLICATE, rank, at, a, name() + " has been done before");
    } else if ((done & needs) != needs) {
      const auto needed = needs == did_f ? VELO_ACTION_F : VELO_ACTION_I;
      report(VELO_VIOLATION_ORDER, rank, at, a,
             name() + " comes before " + text_of(make_action(needed, stage, unit)));
    }
    if ((done & on_host) != 0)
      report(VELO_VIOLATION_OFFLOAD, rank, at, a, name() + " needs what is on the host");
    if (shape_.splits > 1) check_splits(rank, at, a, kind, stage, unit);
    if ((makes & did_w) != 0 && (done & did_w) == 0) ++weights_[stage];
    done |= makes;
  }

  // The gradient of a stage's weights is complete after its last W, and is summed once.
  void check_reduction(std::int32_t rank, std::int64_t at, const action& a) {
    if ((parameters_[a.stage] & updated) != 0)
      report(VELO_VIOLATION_OPTIMIZER, rank, at, a,
             text_of(a) + " comes behind the update that it is for");
    if (weights_[a.stage] > units_)
      return report(VELO_VIOLATION_DUPLICATE, rank, at, a, text_of(a) + " has been done before");
    if (weights_[a.stage] < units_)
      report(VELO_VIOLATION_REDUCE, rank, at, a,
             text_of(a) + " comes when " + std::to_string(weights_[a.stage]) + " of " +
                 std::to_string(units_) + " W are done");
    weights_[a.stage] = units_ + 1;
  }

  void check_update(std::int32_t rank, std::int64_t at, const action& a) {
    if ((parameters_[a.stage] & updated) != 0)
      report(VELO_VIOLATION_DUPLICATE, rank, at, a, text_of(a) + " has been done before");
    if (weights_[a.stage] < units_)
      report(VELO_VIOLATION_OPTIMIZER, rank, at, a,
             text_of(a) + " comes when " + std::to_string(weights_[a.stage]) + " of " +
                 std::to_string(units_) + " W are done");
    parameters_[a.stage] |= updated;
  }

  // Parameters that are gathered were on other ranks, so no earlier action has used them.
  void check_parameters(std::int32_t rank, std::int64_t at, const action& a) {
    std::uint8_t& now = parameters_[a.stage];
    const bool gathers = a.kind == VELO_ACTION_UNSHARD;
    if (gathers && (now & (used | gathered | released)) == used)
      report(VELO_VIOLATION_UNSHARD, rank, at, a, text_of(a) + " comes behind what needs it");
    now &= static_cast<std::uint8_t>(~(gathered | released));
    now |= gathers ? gathered : released;
  }
  template <class Name>
  void use(std::int32_t rank, std::int64_t at, const action& a, std::int32_t stage, Name&& name) {
    std::uint8_t& now = parameters_[stage];
    if ((now & released) != 0)
      report(VELO_VIOLATION_UNSHARD, rank, at, a, name() + " needs parameters that were let go");
    now |= used;
  }

  // Attention reads earlier positions: a split needs the splits before it, and its gradient needs
  // the gradients of the splits after it.
  void check_splits(std::int32_t rank, std::int64_t at, const action& a, velo_action_kind kind,
                    std::int32_t stage, std::int32_t unit) {
    const bool forward = kind == VELO_ACTION_F;
    const std::int32_t other = forward ? unit - 1 : unit + 1;
    if (kind == VELO_ACTION_W || other < 0 || other / shape_.splits != unit / shape_.splits) return;
    const std::uint8_t done = done_[core::at(stage) * units_ + other];
    if ((done & (forward ? did_f : did_i)) == 0)
      report(VELO_VIOLATION_ORDER, rank, at, a,
             text_of(make_action(kind, stage, unit)) + " comes before split " +
                 std::to_string(other % shape_.splits) + " of the same micro-batch");
  }

  void check_complete(std::int32_t stage) {
    const std::int32_t rank = pipeline_.rank_of(stage);
    if (rank < 0)
      return report(VELO_VIOLATION_PLACEMENT, -1, -1, make_action(VELO_ACTION_F, stage, 0),
                    "stage " + std::to_string(stage) + " is on no rank");
    for (std::int32_t unit = 0; unit < units_ && !full(); ++unit) {
      const std::uint8_t done = done_[core::at(stage) * units_ + unit];
      if ((done & (did_f | did_i | did_w)) == (did_f | did_i | did_w)) continue;
      const velo_action_kind missing = (done & did_f) == 0             ? VELO_ACTION_F
                                       : (done & (did_i | did_w)) == 0 ? VELO_ACTION_B
                                       : (done & did_i) == 0           ? VELO_ACTION_I
                                                                       : VELO_ACTION_W;
      const action a = make_action(missing, stage, unit);
      report(VELO_VIOLATION_MISSING, rank, -1, a, text_of(a) + " is missing");
    }
  }

  void check_progress() {
    std::vector<stuck_rank> stuck;
    simulate(pipeline_, ticks{}, stuck);
    for (const stuck_rank& s : stuck) {
      action a;
      pipeline_.read(s.rank, s.index, 1, &a);
      report(VELO_VIOLATION_STUCK, s.rank, s.index, a,
             text_of(a) + " waits for what a rank that waits itself would make");
    }
  }

  const schedule& pipeline_;
  const shape shape_;
  const std::int32_t units_;
  std::vector<std::uint8_t> done_;
  std::vector<std::int32_t> weights_;     // W done, by stage; one more once they are summed
  std::vector<std::uint8_t> parameters_;  // by stage
  const bool shards_;                     // some are gathered or released
  bool messages_ = false;                 // there are sends or receives
  std::vector<violation> found_;
};

}  // namespace

std::vector<violation> check(const schedule& pipeline) {
  if (is_sound_in_order(pipeline)) return {};  // the case of most schedules
  return checker(pipeline).run();
}

}  // namespace velo::sched
