// Shortens the beginnings of rows until each depends only on other beginnings.
#include "sched/check/ahead.hpp"

#include "core/index.hpp"

namespace velo::sched {
namespace {

bool leads(velo_action_kind kind) {
  return kind == VELO_ACTION_F || kind == VELO_ACTION_SEND_F || kind == VELO_ACTION_RECV_F;
}

class beginnings {
 public:
  explicit beginnings(const schedule& pipeline)
      : pipeline_(pipeline),
        shape_(pipeline.sizes()),
        sent_(static_cast<std::size_t>(shape_.cells())) {
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      row_reader row(pipeline_, rank);
      while (!row.done() && leads(row.next().kind)) row.pass();
      cuts_.push_back(row.index());
      row_sends_.push_back(says_sends(pipeline_, rank));
    }
    do note_sent();
    while (shorten());
  }

  ahead of(std::int32_t rank) const {
    ahead result;
    result.cut = cuts_[core::at(rank)];
    for (row_reader row(pipeline_, rank, result.cut); !row.done(); row.pass()) {
      const action& a = row.next();
      const bool takes = has_forward(a.kind) || a.kind == VELO_ACTION_RECV_F;
      if (takes && from_another(a, rank) && sent_[before(a)])
        result.arriving.push_back({a.stage, a.microbatch});
    }
    return result;
  }

 private:
  template <class Each>
  void each(std::int32_t rank, Each&& use) const {
    const std::int64_t cut = cuts_[core::at(rank)];
    for (row_reader row(pipeline_, rank); row.index() < cut; row.pass())
      if (!use(row.next(), row.index())) return;
  }

  std::size_t cell(std::int32_t stage, std::int32_t unit) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(shape_.units()) +
           static_cast<std::size_t>(unit);
  }
  std::size_t before(const action& a) const { return cell(a.stage - 1, a.microbatch); }
  bool from_another(const action& a, std::int32_t rank) const {
    return !shape_.begins_chain(a.stage) && pipeline_.rank_of(a.stage - 1) != rank;
  }

  void note_sent() {
    sent_.assign(sent_.size(), false);
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      const velo_action_kind sends =
          row_sends_[core::at(rank)] ? VELO_ACTION_SEND_F : VELO_ACTION_F;
      each(rank, [&](const action& a, std::int64_t) {
        if (a.kind == sends) sent_[cell(a.stage, a.microbatch)] = true;
        return true;
      });
    }
  }

  bool shorten() {
    bool shorter = false;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank)
      each(rank, [&](const action& a, std::int64_t index) {
        if (a.kind == VELO_ACTION_SEND_F || !from_another(a, rank) || sent_[before(a)]) return true;
        cuts_[core::at(rank)] = index;
        shorter = true;
        return false;
      });
    return shorter;
  }

  const schedule& pipeline_;
  const shape& shape_;
  std::vector<std::int64_t> cuts_;  // by rank
  std::vector<bool> row_sends_;     // by rank
  std::vector<bool> sent_;          // by stage and unit: whether a beginning sends the output
};

}  // namespace

ahead ahead_of(const schedule& pipeline, std::int32_t rank) {
  return beginnings(pipeline).of(rank);
}

}  // namespace velo::sched
