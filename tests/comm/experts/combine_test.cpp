// velo_group_combine against sums by plain loops in the order that it promises: the same bits, over
// any number of hosts; what crosses between hosts against the least that can; gradients by both
// calls; what it refuses, and faults.
#include <algorithm>

#include "comm/hosts.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// Experts' rows for the rows of each rank. What an expert made of target i of a rank's row is drawn
// by a number of its own.
struct traffic {
  traffic(int ranks, std::int64_t most_rows, std::int64_t width, std::int64_t each, bool weighted,
          std::uint32_t seed)
      : ranks(ranks), width(width), each(each), targets(at(ranks)), weights(at(ranks)) {
    random_source32 random(seed);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t rows = most_rows == 0 ? 0 : random() % (at(most_rows) + 1);
      for (std::int64_t i = 0; i < rows * each; ++i) {
        targets[at(rank)].push_back(static_cast<std::int32_t>(random() % at(ranks + 1)) - 1);
        weights[at(rank)].push_back(weighted ? static_cast<float>(random.below(1000)) / 997 : 1);
      }
    }
  }
  std::int64_t rows(int rank) const {
    return static_cast<std::int64_t>(targets[at(rank)].size()) / each;
  }
  double made(int rank, std::int64_t target, std::int64_t column) const {
    const auto mixed = static_cast<std::uint32_t>((rank * 7919 + target) * 104729 + column);
    return static_cast<double>(mixed * 2654435761u >> 8) / (1 << 23) - 1;
  }
  numbers had_by(int rank) const {  // rows of each rank that this one had
    numbers all;
    for (int from = 0; from < ranks; ++from)
      all.push_back(std::count(targets[at(from)].begin(), targets[at(from)].end(), rank));
    return all;
  }
  // f(rank, target) for each row that a rank had, in their order.
  template <class F>
  void each_had_by(int rank, F&& f) const {
    for (int from = 0; from < ranks; ++from)
      for (std::size_t i = 0; i < targets[at(from)].size(); ++i)
        if (targets[at(from)][i] == rank) f(from, static_cast<std::int64_t>(i));
  }
  elements_ptr rows_had_by(int rank, velo_dtype dtype) const {
    elements_ptr all = make_elements(dtype, sum_of(had_by(rank)) * width);
    std::int64_t next = 0;
    each_had_by(rank, [&](int from, std::int64_t target) {
      for (std::int64_t i = 0; i < width; ++i) all->set(next++, made(from, target, i));
    });
    return all;
  }
  // The expected result of a rank, and the bytes that cross to it without the counts of rows.
  std::int64_t expect(int rank, int per_host, velo_dtype dtype, bool weighted,
                      elements& out) const {
    std::int64_t crosses = 0;
    elements one(dtype, 1);
    for (std::int64_t row = 0; row < rows(rank); ++row) {
      std::vector<float> total(at(width), 0.0f);
      bool any = false;
      for (int host = 0; host < ranks / per_host; ++host) {
        std::vector<float> sum(at(width), 0.0f);
        int n = 0;
        for (std::int64_t t = row * each; t < (row + 1) * each; ++t) {
          const std::int32_t to = targets[at(rank)][at(t)];
          if (to < 0 || to / per_host != host) continue;
          for (std::int64_t i = 0; i < width; ++i) {
            one.set(0, made(rank, t, i));
            const float product = static_cast<float>(one.get(0)) * weights[at(rank)][at(t)];
            sum[at(i)] = n == 0 ? product : sum[at(i)] + product;
          }
          ++n;
        }
        if (n == 0) continue;
        for (std::int64_t i = 0; i < width; ++i)
          total[at(i)] = any ? total[at(i)] + sum[at(i)] : sum[at(i)];
        any = true;
        if (host == rank / per_host) continue;
        crosses += n == 1 ? (width * dtype.bits / 8 + 3) / 4 * 4 : width * 4;
        crosses += (weighted ? 8 : 4) * each;
      }
      for (std::int64_t i = 0; i < width; ++i) out.set(row * width + i, total[at(i)]);
    }
    return crosses;
  }

  int ranks;
  std::int64_t width, each;
  std::vector<std::vector<std::int32_t>> targets;
  std::vector<std::vector<float>> weights;
};

struct how {
  velo_dtype in = f32, out = f32;
  bool weighted = true;
};

// One rank's call, and what it reads.
class caller {
 public:
  caller(const hosts& on, const traffic& t, int rank, const how& is = {})
      : on_(on), t_(t), rank_(rank), how_(is), in_(t.rows_had_by(rank, is.in)) {}

  // counts: of rows for each rank; unless given, what it had named.
  velo_status call(elements& out, velo_stream stream = nullptr, numbers counts = {}) const {
    if (counts.empty()) counts = t_.had_by(rank_);
    const numbers in_shape{sum_of(counts), t_.width}, out_shape{t_.rows(rank_), t_.width},
        names{t_.rows(rank_), t_.each};
    auto* targets = const_cast<std::int32_t*>(t_.targets[at(rank_)].data());
    auto* weights = const_cast<float*>(t_.weights[at(rank_)].data());
    const velo_tensor from = tensor_of(in_->at(0), how_.in, in_shape),
                      to = tensor_of(out.at(0), how_.out, out_shape),
                      by = tensor_of(targets, i32, names), times = tensor_of(weights, f32, names);
    return velo_group_combine(stream != nullptr ? stream : on_.all.stream(rank_),
                              on_.inside[at(rank_)], on_.across[at(rank_)], &from, counts.data(),
                              &by, how_.weighted ? &times : nullptr, &to);
  }

 private:
  const hosts& on_;
  const traffic& t_;
  const int rank_;
  const how how_;
  const elements_ptr in_;
};

std::vector<elements_ptr> outs_of(const traffic& t, velo_dtype dtype) {
  std::vector<elements_ptr> all;
  for (int rank = 0; rank < t.ranks; ++rank)
    all.push_back(make_elements(dtype, t.rows(rank) * t.width));
  return all;
}

}  // namespace

TEST_CASE("rows come back as their sums in the order promised, one for a row from each host") {
  struct layout {
    int hosts, per_host;
  };
  std::uint32_t seed = 11;
  for (const layout& is : {layout{1, 1}, {1, 3}, {2, 1}, {2, 2}, {3, 2}, {2, 4}}) {
    hosts on(is.hosts, is.per_host);
    for (const how& as : {how{}, how{bf16, bf16, true}, how{bf16, f32, true}, how{f16, f16, false},
                          how{f32, f32, false}})
      for (const std::int64_t width : {1, 35, 600})
        for (const std::int64_t each : {1, 2, 8}) {
          INFO(is.hosts << " hosts of " << is.per_host << ", " << width << " of " << int{as.in.bits}
                        << " bits, " << each);
          const traffic t(on.all.size(), width == 600 ? 10 : 40, width, each, as.weighted, ++seed);
          const auto expected = outs_of(t, as.out), got = outs_of(t, as.out);
          std::int64_t crosses = 8 * (is.hosts - 1) * on.all.size();
          for (int rank = 0; rank < t.ranks; ++rank)
            crosses += t.expect(rank, is.per_host, as.in, as.weighted, *expected[at(rank)]);
          on.crossed = 0;
          on.all.require([&](int rank) { return caller(on, t, rank, as).call(*got[at(rank)]); });
          for (std::size_t rank = 0; rank < got.size(); ++rank) {
            CHECK(got[rank]->same_bits(*expected[rank]));
            CHECK(got[rank]->borders_kept());
          }
          CHECK(on.crossed == crosses);
        }
  }
}

TEST_CASE("combinations of nothing, and of rows that name nobody") {
  hosts on(2, 2);
  const traffic none(4, 0, 16, 2, true, 1);
  traffic few = none;
  few.targets[1] = {-1, -1, 3, -1};
  few.weights[1] = {1, 1, 2, 1};
  for (const traffic* t : {&none, static_cast<const traffic*>(&few)}) {
    const auto got = outs_of(*t, f32);
    on.all.require([&](int rank) { return caller(on, *t, rank).call(*got[at(rank)]); });
    for (std::int64_t i = 0; t == &few && i < 16; ++i) {
      CHECK(got[1]->get(i) == 0);
      CHECK(got[1]->get(16 + i) == 2 * static_cast<float>(few.made(1, 2, i)));
    }
  }
}

TEST_CASE("combinations and dispatches on queues, with the groups either way round, end in order") {
  hosts on(2, 2);
  const traffic t(4, 30, 64, 4, true, 7);
  const auto expected = outs_of(t, f32), first = outs_of(t, f32), last = outs_of(t, f32);
  for (int rank = 0; rank < 4; ++rank) t.expect(rank, 2, f32, true, *expected[at(rank)]);
  on.all.require([&](int rank) {
    const caller mine(on, t, rank);
    velo_stream one = nullptr, other = nullptr;
    velo_status done = velo_stream_create(on.all.context(rank), &one);
    if (done == VELO_OK) done = velo_stream_create(on.all.context(rank), &other);
    if (done == VELO_OK) done = mine.call(*first[at(rank)], one);
    // In between a rank's own row goes to itself and back, with the groups changed over.
    std::vector<float> row(64, 9), there(64, 0), back(64, 0);
    std::int32_t itself = rank % 2 * 2 + rank / 2;
    numbers counts(4, 0);
    counts[at(itself)] = 1;
    const numbers shape{1, 64}, pair{1};
    const velo_tensor from = tensor_of(row.data(), f32, shape),
                      between = tensor_of(there.data(), f32, shape),
                      to = tensor_of(back.data(), f32, shape),
                      targets = tensor_of(&itself, i32, pair);
    const velo_group inside = on.inside[at(rank)], across = on.across[at(rank)];
    if (done == VELO_OK)
      done = velo_group_dispatch(other, across, inside, &from, &targets, counts.data(), &between);
    if (done == VELO_OK)
      done = velo_group_combine(other, across, inside, &between, counts.data(), &targets, nullptr,
                                &to);
    if (done == VELO_OK) done = mine.call(*last[at(rank)], one);
    for (const velo_stream stream : {one, other}) {
      const velo_status ended = velo_stream_synchronize(stream);
      if (done == VELO_OK) done = ended;
      velo_stream_destroy(stream);
    }
    return done == VELO_OK && back != row ? velo_status{VELO_ERR_INTERNAL} : done;
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(first[rank]->same_bits(*expected[rank]));
    CHECK(last[rank]->same_bits(*expected[rank]));
  }
}

// In whole numbers, so that all sums are exact.
TEST_CASE("the gradients of dispatch and combine are each other, as dispatch.h says") {
  constexpr std::int64_t width = 5, each = 3;
  hosts on(2, 2);
  const traffic t(4, 12, width, each, false, 21);
  random_source32 random(3);
  const auto draw = [&](std::int64_t n) {
    std::vector<float> all;
    for (std::int64_t i = 0; i < n; ++i) all.push_back(static_cast<float>(random.below(9)) - 4);
    return all;
  };
  std::vector<std::vector<float>> w, made, g;  // weights, what experts made, the gradient of out
  for (int rank = 0; rank < 4; ++rank) {
    w.push_back(draw(t.rows(rank) * each));
    made.push_back(draw(sum_of(t.had_by(rank)) * width));
    g.push_back(draw(t.rows(rank) * width));
  }
  auto got_g = made, got_w = made;  // as the rows of experts
  std::vector<std::vector<float>> y = g, dw = w;
  on.all.require([&](int rank) {
    const auto r = at(rank);
    const numbers counts = t.had_by(rank), own{t.rows(rank), width}, had{sum_of(counts), width},
                  names{t.rows(rank), each}, had_names{sum_of(counts), each};
    std::vector<std::int32_t> had_targets(at(had[0] * each));
    std::vector<float> had_weights(at(had[0] * each)), products(at(had[0] * each), 0.0f);
    const auto floats = [](std::vector<float>& of, const numbers& shape) {
      return tensor_of(of.data(), f32, shape);
    };
    const velo_tensor targets =
        tensor_of(const_cast<std::int32_t*>(t.targets[r].data()), i32, names);
    const auto dispatch = [&](const velo_tensor& in, const velo_tensor& out) {
      return velo_group_dispatch(on.all.stream(rank), on.inside[r], on.across[r], &in, &targets,
                                 counts.data(), &out);
    };
    const auto combine = [&](const velo_tensor& in, const velo_tensor* by, const velo_tensor& out) {
      return velo_group_combine(on.all.stream(rank), on.inside[r], on.across[r], &in, counts.data(),
                                &targets, by, &out);
    };
    const velo_tensor weights = floats(w[r], names);
    velo_status done = combine(floats(made[r], had), &weights, floats(y[r], own));
    if (done == VELO_OK) done = dispatch(floats(g[r], own), floats(got_g[r], had));
    if (done == VELO_OK) done = dispatch(weights, floats(had_weights, had_names));
    if (done == VELO_OK) done = dispatch(targets, tensor_of(had_targets.data(), i32, had_names));
    if (done != VELO_OK) return done;
    // Which target a row stands for: a rank named twice gets a row twice, in their order.
    std::int64_t next = 0, row_before = -1, from_before = -1, seen = 0;
    t.each_had_by(rank, [&](int from, std::int64_t target) {
      const std::int64_t row = target / each;
      seen = row == row_before && from == from_before ? seen + 1 : 0;
      row_before = row, from_before = from;
      std::int64_t place = 0;
      for (std::int64_t left = seen;; ++place)
        if (had_targets[at(next * each + place)] == rank && left-- == 0) break;
      for (std::int64_t i = 0; i < width; ++i) {
        products[at(next * each + place)] +=
            made[r][at(next * width + i)] * got_g[r][at(next * width + i)];
        got_w[r][at(next * width + i)] = had_weights[at(next * each + place)];
      }
      ++next;
    });
    return combine(floats(products, had_names), nullptr, floats(dw[r], names));
  });
  // <y, g> is linear in what experts made, and in w: the products with their gradients are the
  // same.
  double all = 0, by_rows = 0, by_weights = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t i = 0; i < y[r].size(); ++i) all += y[r][i] * g[r][i];
    for (std::size_t i = 0; i < made[r].size(); ++i)
      by_rows += made[r][i] * got_g[r][i] * got_w[r][i];
    for (std::size_t i = 0; i < w[r].size(); ++i) by_weights += w[r][i] * dw[r][i];
  }
  CHECK(all != 0);
  CHECK(by_rows == all);
  CHECK(by_weights == all);
}

TEST_CASE("combinations that make no sense are refused by name, and end no group") {
  hosts on(1, 1);
  const velo_stream stream = on.all.stream(0);
  const velo_group inside = on.inside[0], across = on.across[0];
  std::vector<float> x(12), y(12), w(6);
  std::vector<std::int32_t> names(12, 0);
  const numbers rows{3, 4}, odd{4, 3}, none{}, pair{3, 1}, two{3, 2}, short_rows{2, 1};
  const std::int64_t right[] = {3}, negative[] = {-1}, less[] = {2}, more[] = {4};
  const velo_tensor in = tensor_of(x.data(), f32, rows), out = tensor_of(y.data(), f32, rows),
                    to = tensor_of(names.data(), i32, pair), by = tensor_of(w.data(), f32, pair);
  const auto call = [&](const velo_tensor& from, const std::int64_t* counts,
                        const velo_tensor& named, const velo_tensor* weights,
                        const velo_tensor& into, velo_group other = nullptr) {
    return record_of(velo_group_combine(stream, inside, other != nullptr ? other : across, &from,
                                        counts, &named, weights, &into));
  };
  const auto of = [](auto& data, velo_dtype dtype, const numbers& shape) {
    return tensor_of(data.data(), dtype, shape);
  };
  const velo_tensor whole = of(y, i32, rows), narrow = of(y, bf16, rows),
                    far_to = of(names, i32, odd), text = of(w, i32, pair), wide = of(w, f32, two),
                    few = of(w, f32, short_rows), shared = of(y, f32, pair);
  CHECK_REFUSED(call(in, right, to, &by, out, inside), VELO_ERR_ARGUMENT, "across");
  CHECK_REFUSED(call(of(x, f32, none), right, to, &by, out), VELO_ERR_RANK, "in");
  CHECK_REFUSED(call(of(x, i32, rows), right, to, &by, whole), VELO_ERR_DTYPE, "in.dtype");
  CHECK_REFUSED(call(in, right, to, &by, narrow), VELO_ERR_DTYPE, "out.dtype");
  CHECK_REFUSED(call(of(x, bf16, rows), right, to, &by, of(y, f16, rows)), VELO_ERR_DTYPE,
                "out.dtype");
  CHECK_REFUSED(call(in, right, far_to, &by, out), VELO_ERR_SHAPE, "targets");
  CHECK_REFUSED(call(in, right, by, &by, out), VELO_ERR_DTYPE, "targets.dtype");
  CHECK_REFUSED(call(of(x, f32, odd), right, to, &by, out), VELO_ERR_SHAPE, "in");
  CHECK_REFUSED(call(in, nullptr, to, &by, out), VELO_ERR_NULL, "in_counts");
  CHECK_REFUSED(call(in, negative, to, &by, out), VELO_ERR_ARGUMENT, "in_counts[0]");
  CHECK_REFUSED(call(in, more, to, &by, out), VELO_ERR_ARGUMENT, "in_counts[0]");
  CHECK_REFUSED(call(in, less, to, &by, out), VELO_ERR_SHAPE, "in");
  CHECK_REFUSED(call(in, right, to, &text, out), VELO_ERR_DTYPE, "weights.dtype");
  CHECK_REFUSED(call(in, right, to, &wide, out), VELO_ERR_SHAPE, "weights");
  CHECK_REFUSED(call(in, right, to, &few, out), VELO_ERR_SHAPE, "weights");
  CHECK_REFUSED(call(in, right, to, &by, in), VELO_ERR_OVERLAP, "out");
  CHECK_REFUSED(call(in, right, to, &shared, out), VELO_ERR_OVERLAP, "out");
  CHECK(call(in, right, to, &by, out).code == VELO_OK);
  names[2] = 1;  // no rank: known once the work runs
  CHECK_REFUSED(call(in, right, to, &by, out), VELO_ERR_ARGUMENT, "targets[2]");
  names[2] = 0;  // a rank alone goes on
  CHECK(call(in, right, to, nullptr, out).code == VELO_OK);
}

TEST_CASE("a count that is not what a rank named is named, wherever the rank is") {
  for (const wrong_count& is : wrong_counts) {
    hosts on(is.hosts, is.per_host);
    traffic t(on.all.size(), 20, 32, 2, true, 13);
    t.targets[at(is.other)] = {is.rank, -1, is.rank, is.rank, -1, -1};
    t.weights[at(is.other)].assign(6, 1);
    numbers wrong = t.had_by(is.rank);
    --wrong[at(is.other)];
    const auto got = outs_of(t, f32);
    const std::vector<call_record> all = on.all.run([&](int rank) {
      return caller(on, t, rank).call(*got[at(rank)], nullptr, rank == is.rank ? wrong : numbers());
    });
    const call_record& one = all[at(is.rank)];
    INFO(is.hosts << " hosts of " << is.per_host << ": " << one);
    const bool own = is.rank == is.other;
    const std::string argument = "in_counts[" + std::to_string(is.other) + "]";
    const int finder =
        is.rank / is.per_host * is.per_host + is.other % is.per_host;  // adds them up
    if (finder != is.rank) {
      INFO("finder: " << all[at(finder)]);
      CHECK(all[at(finder)].code == VELO_ERR_PEER);
      CHECK(all[at(finder)].expected.find("weighted combine") == 0);
      CHECK(all[at(finder)].cause == argument + " of rank " + std::to_string(is.rank));
    }
    CHECK((is.per_host == 1 || on.ended_inside(is.rank)));
    // A rank that finished its part before the fault was found fails in its next call.
    if (finder != is.rank && one.code == VELO_OK) continue;
    CHECK(one.code == (own ? VELO_ERR_ARGUMENT : VELO_ERR_PEER));
    CHECK(one.argument == argument);
    CHECK(one.expected == "3, the rows that rank " + std::to_string(is.other) + " named");
    CHECK(one.got == "2");
    if (!own) CHECK(one.rank == is.other);
  }
}

TEST_CASE("a rank that does not fit the others' combination, or does not come, ends their groups") {
  const traffic t(4, 20, 32, 2, true, 9);
  const auto got = outs_of(t, f32);
  SECTION("weights of one rank alone") {
    hosts on(2, 2);
    const std::vector<call_record> all = on.all.run([&](int rank) {
      return caller(on, t, rank, how{f32, f32, rank != 3}).call(*got[at(rank)]);
    });
    CHECK(all[1].code == VELO_ERR_PEER);
    CHECK(all[3].code == VELO_ERR_PEER);
    CHECK(record_of(velo_group_barrier(on.all.stream(3), on.across[3])).code == VELO_ERR_PEER);
  }
  SECTION("weights of one rank alone, on one host") {
    hosts on(1, 2);
    const traffic here(2, 20, 32, 2, true, 9);
    const auto sums = outs_of(here, f32);
    const std::vector<call_record> all = on.all.run([&](int rank) {
      return caller(on, here, rank, how{f32, f32, rank != 1}).call(*sums[at(rank)]);
    });
    CHECK(all[0].code == VELO_ERR_PEER);
  }
  SECTION("a dispatch, whose steps have the sizes of a combination's") {
    const int count = GENERATE(1, 2);
    hosts on(count, 2 / count);
    std::vector<std::int32_t> names = {0, 1};
    const numbers shape{2, 4}, pair{2, 1}, one_each{1, 1};
    const velo_tensor to = tensor_of(names.data(), i32, pair);
    std::vector<std::vector<float>> given(2, std::vector<float>(8)), made = given;
    const std::vector<call_record> all = on.all.run([&](int rank) {
      const velo_tensor x = tensor_of(given[at(rank)].data(), f32, shape),
                        y = tensor_of(made[at(rank)].data(), f32, shape);
      const velo_stream stream = on.all.stream(rank);
      const velo_group inside = on.inside[at(rank)], across = on.across[at(rank)];
      return rank == 0 ? velo_group_dispatch(stream, inside, across, &x, &to, one_each.data(), &y)
                       : velo_group_combine(stream, inside, across, &x, one_each.data(), &to,
                                            nullptr, &y);
    });
    for (const call_record& one : all) {
      INFO(one);
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.expected.find(" (all_to_all of ") != std::string::npos);
    }
  }
  SECTION("rows that nobody had") {
    hosts on(2, 2);
    traffic wrong = t;
    wrong.targets[2].assign(wrong.targets[2].size(), 1);
    REQUIRE(wrong.rows(2) > 0);
    const std::vector<call_record> all = on.all.run(
        [&](int rank) { return caller(on, rank == 2 ? wrong : t, rank).call(*got[at(rank)]); });
    // Rank 0 stands in for rank 2 on its host, and has rows of rank 1 for it.
    CHECK_REFUSED(all[0], VELO_ERR_PEER, "in_counts[2]");
    CHECK(on.ended_inside(1));
  }
  SECTION("nobody") {
    hosts on(2, 2, 150);
    const std::vector<call_record> all = on.all.run([&](int rank) {
      return rank == 3 ? velo_status{VELO_OK} : caller(on, t, rank).call(*got[at(rank)]);
    });
    CHECK(all[1].code == VELO_ERR_PEER);
    CHECK(all[1].rank == 1);  // of the ranks across
    CHECK(all[0].code == VELO_ERR_PEER);
    CHECK(all[2].code == VELO_ERR_PEER);
    CHECK(record_of(velo_group_barrier(on.all.stream(1), on.inside[1])).code == VELO_ERR_PEER);
  }
}
