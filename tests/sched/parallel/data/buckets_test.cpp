// Gradient buckets: the bits of one collective, in an order that all ranks share, beside other
// work.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>

#include "comm/transport/local/local.hpp"
#include "tests/comm/forwarding.hpp"
#include "tests/comm/ranks.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

const std::vector<std::int64_t> slices = {700, 3, 1, 300, 1000, 17, 64, 2000, 5};

std::int64_t total(const std::vector<std::int64_t>& of) {
  return std::accumulate(of.begin(), of.end(), std::int64_t{0});
}

// Ranks with gradients, and buckets whose stream is a queue.
class training {
 public:
  training(int ranks, velo_dtype dtype, velo_bucket_mode mode, std::uint64_t bytes = 1000)
      : ranks_(ranks) {
    velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
    desc.mode = mode;
    desc.bytes = bytes;
    for (int r = 0; r < ranks; ++r) {
      gradients_.push_back(make_elements(dtype, total(slices)));
      links_.push_back(ranks_.context(r).new_stream());
      const velo_tensor all = gradients_.back()->view();
      velo_buckets made = nullptr;
      REQUIRE(velo_buckets_create(links_.back(), ranks_.group(r), &all, slices.data(),
                                  static_cast<std::int64_t>(slices.size()), &desc,
                                  &made) == VELO_OK);
      buckets_.push_back(made);
    }
  }

  // Fills gradients with numbers that differ each step.
  void fill(int step) {
    for (int r = 0; r < ranks_.size(); ++r)
      for (std::int64_t i = 0; i < total(slices); ++i)
        gradients(r).set(i, static_cast<double>((i * 37 + r * 101 + step * 13) % 1009) / 64 - 8);
  }
  // All slices in an order, which may differ by rank.
  void step(const std::function<std::vector<std::int64_t>(int)>& order) const {
    ranks_.require([&](int r) {
      for (const std::int64_t slice : order(r))
        if (const velo_status s = velo_buckets_ready(buckets(r), ranks_.stream(r), slice);
            s != VELO_OK)
          return s;
      return velo_buckets_finish(buckets(r), ranks_.stream(r));
    });
  }
  // The result of one collective over the same gradients.
  std::vector<elements_ptr> expected(velo_dtype dtype) const {
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = VELO_REDUCE_AVG;
    std::vector<elements_ptr> all;
    for (int r = 0; r < ranks_.size(); ++r) all.push_back(make_elements(dtype, total(slices)));
    ranks_.require([&](int r) {
      const velo_tensor in = gradients(r).view(), out = all[at(r)]->view();
      return velo_group_all_reduce(ranks_.stream(r), ranks_.group(r), &how, &in, &out);
    });
    return all;
  }

  const local_ranks& ranks() const { return ranks_; }
  velo_buckets buckets(int rank) const { return buckets_[at(rank)]; }
  elements& gradients(int rank) const { return *gradients_[at(rank)]; }
  velo_buckets_info info(int rank) const {
    velo_buckets_info info = VELO_BUCKETS_INFO_INIT;
    REQUIRE(velo_buckets_get_info(buckets(rank), &info) == VELO_OK);
    return info;
  }
  velo_bucket bucket(int rank, std::int64_t index) const {
    velo_bucket one = VELO_BUCKET_INIT;
    REQUIRE(velo_buckets_get_bucket(buckets(rank), index, &one) == VELO_OK);
    return one;
  }

 private:
  local_ranks ranks_;
  std::vector<elements_ptr> gradients_;
  std::vector<velo_stream> links_;
  std::vector<velo_buckets> buckets_;
};

std::vector<std::int64_t> shuffled(int seed) {
  std::vector<std::int64_t> order(slices.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int64_t>((i * 4 + static_cast<std::size_t>(seed)) % order.size());
  return order;
}

}  // namespace

TEST_CASE("buckets have the bits of one collective over all gradients, in any order") {
  for (const velo_dtype dtype : {f32, bf16})
    for (const int ranks : {1, 2, 3}) {
      training t(ranks, dtype, VELO_BUCKETS_ALL_REDUCE);
      REQUIRE(t.info(0).buckets > 2);
      for (int step = 0; step < 3; ++step) {
        t.fill(step);
        const auto expected = t.expected(dtype);
        t.step([&](int rank) { return shuffled(rank * 2 + step); });
        for (int r = 0; r < ranks; ++r) {
          CHECK(t.gradients(r).same_bits(*expected[at(r)]));
          CHECK(t.gradients(r).borders_kept());
        }
        CHECK(t.info(0).steps == step + 1);
      }
    }
}

TEST_CASE("buckets go the last first, and then in the order that rank 0 saw") {
  training t(2, f32, VELO_BUCKETS_ALL_REDUCE, 4);  // a slice each
  const auto count = static_cast<std::int64_t>(slices.size());
  REQUIRE(t.info(0).buckets == count);
  for (std::int64_t i = 0; i < count; ++i) CHECK(t.bucket(1, i).place == count - 1 - i);
  t.step([&](int rank) { return shuffled(rank); });
  t.step([&](int) { return shuffled(5); });  // by now it is known, and is not learned again
  for (int r = 0; r < 2; ++r)
    for (std::int64_t i = 0; i < count; ++i) CHECK(t.bucket(r, shuffled(0)[at(i)]).place == i);
}

// Buckets of one sender, which takes as long for each as its elements: when all are done, after
// they became ready at different times.
TEST_CASE("no order of buckets leaves less to wait for than the one that is learned") {
  const std::vector<double> ready = {9, 2, 7, 4, 8, 1, 6, 3};
  const std::vector<double> takes = {2, 1, 3, 0.5, 1, 2, 0.5, 1};
  training t(2, f32, VELO_BUCKETS_ALL_REDUCE, 4);
  std::vector<std::int64_t> by_time(8);
  std::iota(by_time.begin(), by_time.end(), 0);
  std::sort(by_time.begin(), by_time.end(),
            [&](std::int64_t a, std::int64_t b) { return ready[at(a)] < ready[at(b)]; });
  t.step([&](int) { return by_time; });
  t.step([&](int) { return by_time; });
  std::vector<std::int64_t> order(8);
  for (std::int64_t i = 0; i < 8; ++i) order[at(t.bucket(1, i).place)] = i;
  const auto done = [&](const std::vector<std::int64_t>& in) {
    double now = 0;
    for (const std::int64_t i : in) now = std::max(now, ready[at(i)]) + takes[at(i)];
    return now;
  };
  std::vector<std::int64_t> any(8);
  std::iota(any.begin(), any.end(), 0);
  double best = done(any);
  const double first = best;
  do best = std::min(best, done(any));
  while (std::next_permutation(any.begin(), any.end()));
  CHECK(best < first);
  CHECK(done(order) - 9 <= 1.05 * (best - 9));
}

TEST_CASE("a bucket is sent off when its last slice is ready, at level 2") {
  training t(2, f32, VELO_BUCKETS_ALL_REDUCE, 8000);
  const auto called = [&] { return info_of(t.ranks().group(0)).called; };
  REQUIRE(t.info(0).buckets == 3);  // of slices 0 to 4, 5 to 7, 8
  const velo_stream now = t.ranks().stream(0);
  REQUIRE(velo_buckets_ready(t.buckets(0), now, 5) == VELO_OK);
  REQUIRE(velo_buckets_ready(t.buckets(0), now, 7) == VELO_OK);
  REQUIRE(velo_buckets_ready(t.buckets(0), now, 6) == VELO_OK);
  CHECK(called() == 0);  // it is not its turn
  REQUIRE(velo_buckets_ready(t.buckets(0), now, 8) == VELO_OK);
  CHECK(called() == 2);
  t.ranks().require([&](int r) { return velo_buckets_finish(t.buckets(r), t.ranks().stream(r)); });
  CHECK(called() == 4);  // with the order
}

TEST_CASE("below level 2 everything is sent off at the end of a step") {
  const live_context context(R"({"level": 1})");
  velo_group group = nullptr;
  REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK);
  const auto all = make_elements(f32, 10);
  const velo_tensor gradients = all->view();
  const std::int64_t counts[] = {4, 6};
  velo_buckets buckets = nullptr;
  REQUIRE(velo_buckets_create(context.inline_stream(), group, &gradients, counts, 2, nullptr,
                              &buckets) == VELO_OK);
  for (const std::int64_t slice : {0, 1})
    REQUIRE(velo_buckets_ready(buckets, context.inline_stream(), slice) == VELO_OK);
  CHECK(info_of(group).called == 0);
  REQUIRE(velo_buckets_finish(buckets, context.inline_stream()) == VELO_OK);
  CHECK(info_of(group).called == 2);
}

TEST_CASE("own parts are combined, and gathered give all ranks all") {
  for (const velo_dtype dtype : {f32, bf16})
    for (const int ranks : {1, 2, 3}) {
      training t(ranks, dtype, VELO_BUCKETS_REDUCE_SCATTER);
      t.fill(0);
      const auto expected = t.expected(dtype);
      t.step([&](int) { return shuffled(0); });
      std::int64_t owned = 0;
      for (int r = 0; r < ranks; ++r)
        for (std::int64_t b = 0; b < t.info(r).buckets; ++b) {
          const velo_bucket one = t.bucket(r, b);
          owned += one.own_count;
          CHECK((one.own_offset >= one.offset &&
                 one.own_offset + one.own_count <= one.offset + one.count));
          const auto bytes = static_cast<std::size_t>(one.own_count * (dtype.bits / 8));
          const elements& same = *expected[at(r)];
          CHECK(std::memcmp(t.gradients(r).at(one.own_offset), same.at(one.own_offset), bytes) ==
                0);
        }
      CHECK(owned == total(slices));
      t.ranks().require([&](int r) {
        const velo_tensor all = t.gradients(r).view();
        return velo_buckets_gather(t.buckets(r), t.ranks().stream(r), &all);
      });
      t.ranks().require([&](int r) {
        for (std::size_t k = 0; k < slices.size(); ++k)
          if (const velo_status s = velo_buckets_wait(t.buckets(r), t.ranks().stream(r),
                                                      static_cast<std::int64_t>(k));
              s != VELO_OK)
            return s;
        return velo_status{VELO_OK};
      });
      for (int r = 0; r < ranks; ++r) CHECK(t.gradients(r).same_bits(*expected[at(r)]));
    }
}

namespace {

// Lets a number of gathers pass, and holds the others.
struct gate {
  std::mutex lock;
  std::condition_variable moved;
  int passing = 0;

  void pass() {
    std::unique_lock<std::mutex> held(lock);
    moved.wait(held, [this] { return passing > 0; });
    --passing;
  }
  void open(int more) {
    const std::lock_guard<std::mutex> held(lock);
    passing += more;
    moved.notify_all();
  }
};

class gated final : public forwarding {
 public:
  gated(std::unique_ptr<comm::transport> link, gate& by) : forwarding(std::move(link)), by_(by) {}
  void run(const comm::operation& what, core::execution& state) override {
    if (what.terms.kind == comm::collective::all_gather) by_.pass();
    forwarding::run(what, state);
  }

 private:
  gate& by_;
};

}  // namespace

TEST_CASE("a slice is there while later ones are still on their way") {
  const local_ranks all(2);
  auto links = comm::make_local(2, std::size_t{1} << 20, 20000000000);
  gate by[2];
  std::vector<float> weights[2] = {std::vector<float>(3000), std::vector<float>(3000)};
  const std::int64_t counts[] = {1000, 1000, 1000}, rows = 3000;
  all.require([&](int rank) {
    std::vector<float>& mine = weights[rank];
    const velo_tensor view = view_of(mine.data(), f32, rows);
    const velo_group group = group_over(
        all.context(rank), std::make_unique<gated>(std::move(links[at(rank)]), by[rank]), "gated");
    velo_buckets_desc desc = VELO_BUCKETS_DESC_INIT;
    desc.mode = VELO_BUCKETS_REDUCE_SCATTER;
    desc.bytes = 1;
    velo_buckets made = nullptr;
    velo_status done =
        velo_buckets_create(all.context(rank).new_stream(), group, &view, counts, 3, &desc, &made);
    for (std::int64_t k = 0; done == VELO_OK && k < 3; ++k) {
      velo_bucket one = VELO_BUCKET_INIT;
      done = velo_buckets_get_bucket(made, k, &one);
      std::fill_n(mine.begin() + one.own_offset, one.own_count, 1.0f + static_cast<float>(k));
    }
    if (done == VELO_OK) done = velo_buckets_gather(made, all.stream(rank), &view);
    for (std::int64_t k = 0; done == VELO_OK && k < 3; ++k) {
      by[rank].open(1);
      done = velo_buckets_wait(made, all.stream(rank), k);
      const auto first = mine.begin() + k * 1000;
      if (!std::all_of(first, first + 1000, [k](float x) { return x == 1.0f + float(k); }) ||
          (k < 2 && mine[at(k * 1000 + 1000)] != 0 && mine[at(k * 1000 + 1999)] != 0))
        done = VELO_ERR_INTERNAL;
    }
    velo_buckets_destroy(made);
    velo_group_destroy(group);
    return done;
  });
}

TEST_CASE("buckets come after the work of a queue, and the queue after them") {
  training t(2, f32, VELO_BUCKETS_ALL_REDUCE);
  velo_stream queues[] = {t.ranks().context(0).new_stream(), t.ranks().context(1).new_stream()};
  const auto doubled = make_elements(f32, total(slices));
  const auto add = [](velo_stream on, const elements& a, const elements& y) {
    const velo_tensor ta = a.view(), ty = y.view();
    velo_add_args args = VELO_ADD_ARGS_INIT;
    args.a = args.b = &ta;
    args.y = &ty;
    return velo_add(on, &args);
  };
  for (int step = 0; step < 2; ++step) {
    for (int r = 0; r < 2; ++r)
      for (std::int64_t i = 0; i < total(slices); ++i) t.gradients(r).set(i, r + 1);
    t.ranks().require([&](int r) {
      for (int i = 0; i < 20; ++i) {  // times 2^20
        const velo_status s = add(queues[r], t.gradients(r), t.gradients(r));
        if (s != VELO_OK) return s;
      }
      for (std::size_t k = 0; k < slices.size(); ++k)
        velo_buckets_ready(t.buckets(r), queues[r], static_cast<std::int64_t>(k));
      velo_status s = velo_buckets_finish(t.buckets(r), queues[r]);
      if (s == VELO_OK && r == 0) s = add(queues[r], t.gradients(r), *doubled);
      return s == VELO_OK ? velo_stream_synchronize(queues[r]) : s;
    });
    CHECK(doubled->get(0) == 3 * 1048576.0);
    CHECK(doubled->get(total(slices) - 1) == 3 * 1048576.0);
  }
}

TEST_CASE("a rank that ends the group ends a step on all") {
  training t(2, f32, VELO_BUCKETS_ALL_REDUCE);
  const auto ends = t.ranks().run([&](int r) {
    return r == 0 ? velo_group_abort(t.ranks().group(0))
                  : velo_buckets_finish(t.buckets(1), t.ranks().stream(1));
  });
  CHECK(ends[0].code == VELO_OK);
  CHECK(ends[1].code == VELO_ERR_PEER);
  CHECK(ends[1].rank == 0);
}

TEST_CASE("wrong arguments of buckets are refused by name") {
  const live_context context, other;
  velo_group group = nullptr;
  REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK);
  const auto some = make_elements(f32, 10), whole = make_elements(i32, 10);
  const velo_tensor all = some->view(), integers = whole->view();
  const auto refused = [&](const char* argument, velo_stream on, const velo_tensor& gradients,
                           std::vector<std::int64_t> counts, const velo_buckets_desc& desc) {
    velo_buckets made = nullptr;
    const call_record how =
        record_of(velo_buckets_create(on, group, &gradients, counts.data(),
                                      static_cast<std::int64_t>(counts.size()), &desc, &made));
    CHECK(how.code != VELO_OK);
    CHECK(how.argument == argument);
    CHECK(made == nullptr);
  };
  const velo_stream now = context.inline_stream();
  const velo_buckets_desc usual = VELO_BUCKETS_DESC_INIT;
  refused("stream", other.inline_stream(), all, {10}, usual);
  refused("gradients.dtype", now, integers, {10}, usual);
  for (const std::vector<std::int64_t>& counts :
       std::vector<std::vector<std::int64_t>>{{9}, {11}, {5, 0, 5}, {12, -2}, {INT64_MAX, 3}})
    refused("counts", now, all, counts, usual);
  velo_buckets_desc desc = usual;
  desc.mode = 2;
  refused("desc.mode", now, all, {10}, desc);
  desc = usual;
  desc.scale = std::numeric_limits<double>::infinity();
  refused("desc.scale", now, all, {10}, desc);

  velo_buckets buckets = nullptr;
  const std::int64_t counts[] = {4, 6};
  CHECK(record_of(velo_buckets_create(now, group, &all, counts, 0, nullptr, &buckets)).argument ==
        "count");
  REQUIRE(velo_buckets_create(now, group, &all, counts, 2, nullptr, &buckets) == VELO_OK);
  for (const std::int64_t slice : {-1, 2}) {
    CHECK(record_of(velo_buckets_ready(buckets, now, slice)).argument == "slice");
    CHECK(record_of(velo_buckets_wait(buckets, now, slice)).argument == "slice");
  }
  REQUIRE(velo_buckets_ready(buckets, now, 0) == VELO_OK);
  CHECK(velo_buckets_ready(buckets, now, 0) == VELO_ERR_STATE);
  velo_bucket one = VELO_BUCKET_INIT;
  CHECK(record_of(velo_buckets_get_bucket(buckets, 1, &one)).argument == "index");
  CHECK(record_of(velo_buckets_finish(buckets, other.inline_stream())).argument == "stream");
  const auto few = make_elements(f32, 9);
  const velo_tensor short_one = few->view();
  CHECK(record_of(velo_buckets_gather(buckets, now, &short_one)).argument == "parameters");
  velo_group_destroy(group);
  CHECK(velo_buckets_finish(buckets, now) == VELO_ERR_HANDLE);
}
