// A random program of collectives and messages over groups that overlap, on queues and inline, each
// result against what plain loops say. VELO_MIXED_OPERATIONS: how many.
#include <cstdlib>

#include "comm/processes.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

enum kind {
  barrier,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  all_to_all_v,
  gather,
  scatter,
  ring,
  kinds
};

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
  kind what = barrier;
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
  one.what = static_cast<kind>(below(kinds));
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
    const bool many_in = is.what == reduce_scatter || is.what == all_to_all || is.what == scatter;
    const bool many_out = is.what == all_gather || is.what == all_to_all || is.what == gather;
    in_count_ = is.size * (many_in ? size() : 1);
    out_count_ = is.size * (many_out ? size() : 1);
    if (is.what == all_to_all_v) {
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
    if (is.what == broadcast) std::copy(in_.begin(), in_.end(), out_.begin());
  }
  taken(const taken&) = delete;

  velo_status call(velo_stream stream, velo_group group) {
    const velo_tensor in = view(in_, in_count_), out = view(out_, out_count_);
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = is_.op;
    const velo_group_message around[] = {{&in, (me_ + 1) % size(), VELO_MESSAGE_SEND},
                                         {&out, (me_ + size() - 1) % size(), VELO_MESSAGE_RECEIVE}};
    switch (is_.what) {
      case all_reduce:
        return velo_group_all_reduce(stream, group, &how, &in, &out);
      case reduce:
        return velo_group_reduce(stream, group, is_.root, &how, &in, &out);
      case broadcast:
        return velo_group_broadcast(stream, group, is_.root, &out);
      case all_gather:
        return velo_group_all_gather(stream, group, &in, &out);
      case reduce_scatter:
        return velo_group_reduce_scatter(stream, group, &how, &in, &out);
      case all_to_all:
        return velo_group_all_to_all(stream, group, &in, &out);
      case all_to_all_v:
        return velo_group_all_to_all_v(stream, group, &in, in_counts_.data(), nullptr,
                                       out_counts_.data(), nullptr, &out);
      case gather:
        return velo_group_gather(stream, group, is_.root, &in, &out);
      case scatter:
        return velo_group_scatter(stream, group, is_.root, &in, &out);
      case ring:
        return velo_group_exchange(stream, group, around, size() > 1 ? 2 : 0);
      default:
        return velo_group_barrier(stream, group);
    }
  }

  std::int64_t wrong() const {
    std::int64_t all = out_.back() != untouched;
    for (std::int64_t i = 0; i < out_count_; ++i)
      all += out_[static_cast<std::size_t>(i)] != expected(i);
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
      case all_reduce:
        return combined(i);
      case reduce:
        return gets ? combined(i) : untouched;
      case broadcast:
        return has(is_.root, i);
      case all_gather:
        return has(static_cast<int>(i / s), i % s);
      case reduce_scatter:
        return combined(me_ * is_.size + i);
      case all_to_all:
        return has(static_cast<int>(i / s), me_ * is_.size + i % s);
      case all_to_all_v:
        return from_uneven(i);
      case gather:
        return gets ? has(static_cast<int>(i / s), i % s) : untouched;
      case scatter:
        return has(is_.root, me_ * is_.size + i);
      case ring:
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
std::int64_t run(velo_context context, velo_stream stream, velo_group all, int rank, int count) {
  velo_stream queues[2] = {};
  std::vector<velo_group> groups(lists.size());
  std::vector<int> places(lists.size(), -1);
  for (velo_stream& one : queues)
    if (velo_stream_create(context, &one) != VELO_OK) return -1;
  for (std::size_t g = 0; g < lists.size(); ++g) {
    const auto found = std::find(lists[g].begin(), lists[g].end(), rank);
    if (found == lists[g].end()) continue;
    places[g] = static_cast<int>(found - lists[g].begin());
    if (velo_group_create_part(all, lists[g].data(), static_cast<std::int32_t>(lists[g].size()),
                               nullptr, &groups[g]) != VELO_OK)
      return -1;
  }
  thread_random32 random(20261122);
  std::vector<std::unique_ptr<taken>> open;
  std::int64_t wrong = 0;
  for (int i = 0; i < count; ++i) {
    const step is = draw(random, i);
    if (places[is.group] >= 0) {
      open.push_back(std::make_unique<taken>(is, places[is.group]));
      const velo_stream on = is.queued ? queues[i % 2] : stream;
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
    wrong[static_cast<std::size_t>(rank)] =
        run(ranks.context(rank), ranks.stream(rank), ranks.group(rank), rank, count);
    return velo_status{VELO_OK};
  });
  for (const std::int64_t one : wrong) CHECK(one == 0);
}

TEST_CASE("processes run a random program over groups that overlap") {
  processes ranks;
  const int count = operations(200);
  ranks.start_all(5, group_desc(), [count](const member& me) {
    ending all = ending_of(VELO_OK);
    all.value = run(me.context, me.stream, me.group, me.rank, count);
    return all;
  });
  for (const ending& one : ranks.wait()) {
    CHECK(one.code == VELO_OK);
    CHECK(one.value == 0);
  }
}
