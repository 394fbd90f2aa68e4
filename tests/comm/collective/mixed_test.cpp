// A random program of collectives and messages over groups that overlap, on queues and inline, each
// result against what plain loops say. VELO_MIXED_OPERATIONS: how many.
#include <cstdlib>

#include "comm/collective/every_collective.hpp"
#include "comm/processes.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

constexpr velo_collective_kind kinds[] = {
    VELO_COLLECTIVE_BARRIER,    VELO_COLLECTIVE_ALL_REDUCE,   VELO_COLLECTIVE_REDUCE,
    VELO_COLLECTIVE_BROADCAST,  VELO_COLLECTIVE_ALL_GATHER,   VELO_COLLECTIVE_REDUCE_SCATTER,
    VELO_COLLECTIVE_ALL_TO_ALL, VELO_COLLECTIVE_ALL_TO_ALL_V, VELO_COLLECTIVE_GATHER,
    VELO_COLLECTIVE_SCATTER,    VELO_COLLECTIVE_EXCHANGE};

const std::vector<std::vector<std::int32_t>> lists = {{0, 1, 2, 3, 4}, {0, 1, 2}, {4, 2, 0}, {3, 4},
                                                      {1, 3, 4, 0},    {2},       {1, 2}};

int operations(int usual) {
  const char* given = std::getenv("VELO_MIXED_OPERATIONS");
  return given != nullptr ? std::atoi(given) : usual;
}

// The element at index i of a member's input.
std::int32_t element(int operation, int member, std::int64_t i) {
  const auto x = static_cast<std::uint32_t>(operation * 7919 + member * 104729) * 2654435761u +
                 static_cast<std::uint32_t>(i) * 40503u;
  return static_cast<std::int32_t>(x >> 15 & 1023) - 512;
}

struct step {
  int number = 0;
  std::size_t group = 0;
  velo_collective_kind what = VELO_COLLECTIVE_BARRIER;
  std::int64_t size = 0;
  int root = 0;
  velo_reduce_op op = VELO_REDUCE_SUM;
  bool queued = false;
};

step draw(thread_random32& random, int number) {
  const auto below = [&](std::uint32_t n) { return static_cast<int>(random.below(n)); };
  step one;
  one.number = number;
  one.group = static_cast<std::size_t>(below(static_cast<std::uint32_t>(lists.size())));
  one.what = kinds[below(std::size(kinds))];
  constexpr int sizes[] = {0, 1, 3, 17, 100, 3000};
  one.size = sizes[below(6)];
  one.root = below(static_cast<std::uint32_t>(lists[one.group].size()));
  constexpr velo_reduce_op ops[] = {VELO_REDUCE_SUM, VELO_REDUCE_MIN, VELO_REDUCE_MAX};
  one.op = ops[below(3)];
  one.queued = below(3) == 0;
  return one;
}

// A step as one member of its group takes it.
class taken {
 public:
  taken(const step& is, int member) : is_(is), me_(member) {
    const bool many_in = is.what == VELO_COLLECTIVE_REDUCE_SCATTER ||
                         is.what == VELO_COLLECTIVE_ALL_TO_ALL ||
                         is.what == VELO_COLLECTIVE_SCATTER;
    const bool many_out = is.what == VELO_COLLECTIVE_ALL_GATHER ||
                          is.what == VELO_COLLECTIVE_ALL_TO_ALL ||
                          is.what == VELO_COLLECTIVE_GATHER;
    in_count_ = is.size * (many_in ? size() : 1);
    out_count_ = is.size * (many_out ? size() : 1);
    if (is.what == VELO_COLLECTIVE_ALL_TO_ALL_V) {
      in_count_ = out_count_ = 0;
      for (int peer = 0; peer < size(); ++peer) {
        in_counts_.push_back(given(me_, peer));
        out_counts_.push_back(given(peer, me_));
        in_count_ += in_counts_.back();
        out_count_ += out_counts_.back();
      }
    }
    for (std::int64_t i = 0; i < in_count_; ++i) in_.push_back(element(is.number, me_, i));
    out_.assign(static_cast<std::size_t>(out_count_) + 1, untouched);
    if (is.what == VELO_COLLECTIVE_BROADCAST) std::copy(in_.begin(), in_.end(), out_.begin());
  }
  taken(const taken&) = delete;

  velo_status call(velo_stream stream, velo_group group) {
    const velo_tensor in = view(in_, in_count_), out = view(out_, out_count_);
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = is_.op;
    const velo_group_message around[] = {{&in, (me_ + 1) % size(), VELO_MESSAGE_SEND},
                                         {&out, (me_ + size() - 1) % size(), VELO_MESSAGE_RECEIVE}};
    const bool spreads = is_.what == VELO_COLLECTIVE_BROADCAST;
    velo_collective_desc desc = collective_of(is_.what, spreads ? &out : &in, &out, is_.root);
    desc.reduction = &how;
    desc.in_counts = in_counts_.data();
    desc.out_counts = out_counts_.data();
    desc.messages = around;
    desc.message_count = size() > 1 ? 2 : 0;
    return velo::testing::call(stream, group, desc);
  }

  std::int64_t wrong() const {
    std::int64_t all = out_.back() != untouched;
    for (std::int64_t i = 0; i < out_count_; ++i) all += out_[at(i)] != expected(i);
    return all;
  }

 private:
  static constexpr std::int32_t untouched = 123456789;

  int size() const { return static_cast<int>(lists[is_.group].size()); }
  std::int64_t given(int from, int to) const {
    return (from * 3 + to + is_.number) % 5 * is_.size / 3;
  }
  static velo_tensor view(std::vector<std::int32_t>& data, const std::int64_t& count) {
    return view_of(data.data(), i32, count);
  }
  std::int32_t has(int member, std::int64_t i) const { return element(is_.number, member, i); }
  std::int32_t combined(std::int64_t i) const {
    std::int32_t all = has(0, i);
    for (int member = 1; member < size(); ++member) {
      const std::int32_t next = has(member, i);
      all = is_.op == VELO_REDUCE_SUM   ? all + next
            : is_.op == VELO_REDUCE_MIN ? std::min(all, next)
                                        : std::max(all, next);
    }
    return all;
  }
  std::int32_t expected(std::int64_t i) const {
    const std::int64_t s = std::max<std::int64_t>(is_.size, 1);
    const bool gets = me_ == is_.root;
    switch (is_.what) {
      case VELO_COLLECTIVE_ALL_REDUCE:
        return combined(i);
      case VELO_COLLECTIVE_REDUCE:
        return gets ? combined(i) : untouched;
      case VELO_COLLECTIVE_BROADCAST:
        return has(is_.root, i);
      case VELO_COLLECTIVE_ALL_GATHER:
        return has(static_cast<int>(i / s), i % s);
      case VELO_COLLECTIVE_REDUCE_SCATTER:
        return combined(me_ * is_.size + i);
      case VELO_COLLECTIVE_ALL_TO_ALL:
        return has(static_cast<int>(i / s), me_ * is_.size + i % s);
      case VELO_COLLECTIVE_ALL_TO_ALL_V:
        return from_uneven(i);
      case VELO_COLLECTIVE_GATHER:
        return gets ? has(static_cast<int>(i / s), i % s) : untouched;
      case VELO_COLLECTIVE_SCATTER:
        return has(is_.root, me_ * is_.size + i);
      case VELO_COLLECTIVE_EXCHANGE:
        return size() > 1 ? has((me_ + size() - 1) % size(), i) : untouched;
      default:
        return untouched;
    }
  }
  std::int32_t from_uneven(std::int64_t i) const {
    int from = 0;
    for (; i >= given(from, me_); ++from) i -= given(from, me_);
    for (int to = 0; to < me_; ++to) i += given(from, to);
    return has(from, i);
  }

  const step is_;
  const int me_;
  std::int64_t in_count_ = 0, out_count_ = 0;
  std::vector<std::int64_t> in_counts_, out_counts_;
  std::vector<std::int32_t> in_, out_;
};

// The program of one rank: what was wrong, -1: a call failed.
std::int64_t run(const rank_of_group& me, int count) {
  velo_stream queues[2] = {};
  std::vector<velo_group> groups(lists.size());
  std::vector<int> places(lists.size(), -1);
  for (velo_stream& one : queues)
    if (velo_stream_create(me.context, &one) != VELO_OK) return -1;
  for (std::size_t g = 0; g < lists.size(); ++g) {
    const auto found = std::find(lists[g].begin(), lists[g].end(), me.rank);
    if (found == lists[g].end()) continue;
    places[g] = static_cast<int>(found - lists[g].begin());
    if (velo_group_create_part(me.group, lists[g].data(),
                               static_cast<std::int32_t>(lists[g].size()), nullptr,
                               &groups[g]) != VELO_OK)
      return -1;
  }
  thread_random32 random(20261122);
  std::vector<std::unique_ptr<taken>> open;
  std::int64_t wrong = 0;
  for (int i = 0; i < count; ++i) {
    const step is = draw(random, i);
    if (places[is.group] >= 0) {
      open.push_back(std::make_unique<taken>(is, places[is.group]));
      const velo_stream on = is.queued ? queues[i % 2] : me.stream;
      if (open.back()->call(on, groups[is.group]) != VELO_OK) return -1;
    }
    if (i % 50 != 49 && i != count - 1) continue;
    for (const velo_stream one : queues)
      if (velo_stream_synchronize(one) != VELO_OK) return -1;
    for (const auto& one : open) wrong += one->wrong();
    open.clear();
  }
  for (const velo_group one : groups) velo_group_destroy(one);
  return wrong;
}

}  // namespace

TEST_CASE("threads run a random program over groups that overlap") {
  const local_ranks ranks(5);
  const int count = operations(500);
  std::vector<std::int64_t> wrong(5, -2);
  ranks.run([&](int rank) {
    wrong[at(rank)] = run(ranks.rank(rank), count);
    return velo_status{VELO_OK};
  });
  for (const std::int64_t one : wrong) CHECK(one == 0);
}

TEST_CASE("processes run a random program over groups that overlap") {
  processes ranks;
  const int count = operations(200);
  ranks.start_all(5, group_desc(),
                  [count](const rank_of_group& me) { return ending_of(VELO_OK, run(me, count)); });
  check_right(ranks.wait());
}
