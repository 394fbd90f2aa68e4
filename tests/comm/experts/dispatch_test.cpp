// velo_group_dispatch against all_to_all_v of rows laid out by rank: the same bits, over any number
// of hosts; what crosses between hosts against the least that can; what it refuses, and faults.
#include <algorithm>
#include <set>

#include "comm/hosts.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// The rows of each rank, and their targets.
struct traffic {
  traffic(int ranks, std::int64_t most_rows, std::int64_t width, std::int64_t each,
          random_source32& random)
      : width(width), each(each), in(at(ranks)), targets(at(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t rows = most_rows == 0 ? 0 : random() % (at(most_rows) + 1);
      for (std::int64_t i = 0; i < rows * width; ++i)
        in[at(rank)].push_back(static_cast<unsigned char>(random()));
      for (std::int64_t i = 0; i < rows * each; ++i)
        targets[at(rank)].push_back(static_cast<std::int32_t>(random() % at(ranks + 1)) - 1);
    }
  }
  std::int64_t rows(int rank) const {
    return static_cast<std::int64_t>(targets[at(rank)].size()) / each;
  }
  std::int64_t given(int from, int to) const {
    return std::count(targets[at(from)].begin(), targets[at(from)].end(), to);
  }
  numbers got_by(int rank) const {
    numbers all;
    for (std::size_t from = 0; from < in.size(); ++from)
      all.push_back(given(static_cast<int>(from), rank));
    return all;
  }
  // Rows that some rank of another host wants, for each such host once.
  std::int64_t crossings(int per_host) const {
    std::int64_t all = 0;
    for (std::size_t rank = 0; rank < in.size(); ++rank)
      for (std::int64_t row = 0; row < rows(static_cast<int>(rank)); ++row) {
        std::set<int> there;
        for (std::int64_t i = 0; i < each; ++i) {
          const std::int32_t to = targets[rank][at(row * each + i)];
          if (to >= 0 && to / per_host != static_cast<int>(rank) / per_host)
            there.insert(to / per_host);
        }
        all += static_cast<std::int64_t>(there.size());
      }
    return all;
  }
  std::int64_t width, each;
  std::vector<std::vector<unsigned char>> in;
  std::vector<std::vector<std::int32_t>> targets;
};

using bytes = std::vector<unsigned char>;

velo_status plainly(const hosts& on, const traffic& t, int rank, bytes& out) {
  bytes packed;
  numbers give, take = t.got_by(rank);
  for (int to = 0; to < on.all.size(); ++to) {
    give.push_back(t.given(rank, to) * t.width);
    for (std::size_t i = 0; i < t.targets[at(rank)].size(); ++i)
      if (t.targets[at(rank)][i] == to) {
        const auto row = t.in[at(rank)].begin() + static_cast<std::int64_t>(i) / t.each * t.width;
        packed.insert(packed.end(), row, row + t.width);
      }
  }
  for (std::int64_t& one : take) one *= t.width;
  out.resize(at(sum_of(take)));
  const numbers in_shape{static_cast<std::int64_t>(packed.size())}, out_shape{sum_of(take)};
  const velo_tensor from = tensor_of(packed.data(), u8, in_shape),
                    to = tensor_of(out.data(), u8, out_shape);
  return velo_group_all_to_all_v(on.all.stream(rank), on.all.group(rank), &from, give.data(),
                                 nullptr, take.data(), nullptr, &to);
}

// take: what the rank expects of each; unless given, what it gets.
velo_status by_hosts(const hosts& on, const traffic& t, int rank, bytes& out,
                     velo_stream stream = nullptr, numbers take = {}) {
  if (take.empty()) take = t.got_by(rank);
  const numbers in_shape{t.rows(rank), t.width}, out_shape{sum_of(take), t.width},
      target_shape{t.rows(rank), t.each};
  out.assign(at(sum_of(take) * t.width), 0xee);
  const velo_tensor from =
                        tensor_of(const_cast<unsigned char*>(t.in[at(rank)].data()), u8, in_shape),
                    to = tensor_of(out.data(), u8, out_shape),
                    targets = tensor_of(const_cast<std::int32_t*>(t.targets[at(rank)].data()), i32,
                                        target_shape);
  return velo_group_dispatch(stream != nullptr ? stream : on.all.stream(rank), on.inside[at(rank)],
                             on.across[at(rank)], &from, &targets, take.data(), &to);
}

}  // namespace

TEST_CASE("rows reach whom they name as by all_to_all_v, and cross to a host once") {
  random_source32 random(5);
  struct layout {
    int hosts, per_host;
  };
  for (const layout& is : {layout{1, 1}, {1, 3}, {2, 1}, {2, 2}, {3, 2}, {2, 4}}) {
    hosts on(is.hosts, is.per_host);
    for (const std::int64_t width : {1, 48, 4100})
      for (const std::int64_t each : {1, 2, 8}) {
        INFO(is.hosts << " hosts of " << is.per_host << ", " << width << " bytes, " << each);
        const traffic t(on.all.size(), width == 48 ? 200 : 30, width, each, random);
        std::vector<bytes> plain(at(on.all.size())), got = plain;
        on.all.require([&](int rank) { return plainly(on, t, rank, plain[at(rank)]); });
        on.crossed = 0;
        on.all.require([&](int rank) { return by_hosts(on, t, rank, got[at(rank)]); });
        CHECK(got == plain);
        // The least that can cross, with its targets, and how many rows there are for each host.
        const std::int64_t count_bytes = 8 * (is.hosts - 1) * on.all.size();
        CHECK(on.crossed == t.crossings(is.per_host) * (width + 4 * each) + count_bytes);
      }
  }
}

TEST_CASE("dispatches of nothing, with ranks that have nothing") {
  random_source32 random(6);
  hosts on(2, 2);
  const traffic none(4, 0, 16, 2, random);
  traffic few(4, 0, 16, 2, random);
  few.in[1].assign(16, 7);
  few.targets[1] = {-1, 3};
  for (const traffic* t : {&none, static_cast<const traffic*>(&few)}) {
    std::vector<bytes> got(4);
    on.all.require([&](int rank) { return by_hosts(on, *t, rank, got[at(rank)]); });
    CHECK(got[3] == t->in[1]);
    CHECK(got[0].empty());
  }
}

TEST_CASE("dispatches on queues, with the two groups either way round, end in their order") {
  random_source32 random(7);
  hosts on(2, 2);
  const traffic t(4, 50, 64, 4, random);
  std::vector<bytes> plain(4), first(4), last(4);
  on.all.require([&](int rank) { return plainly(on, t, rank, plain[at(rank)]); });
  on.all.require([&](int rank) {
    velo_stream one = nullptr, other = nullptr;
    velo_status done = velo_stream_create(on.all.context(rank), &one);
    if (done == VELO_OK) done = velo_stream_create(on.all.context(rank), &other);
    if (done == VELO_OK) done = by_hosts(on, t, rank, first[at(rank)], one);
    // In between a rank alone, to whom its own rows go, with the groups changed over.
    bytes row(64, 9), back(64, 0);
    const int host = rank / 2, place = rank % 2;
    std::int32_t itself = place * 2 + host;
    numbers takes(4, 0);
    takes[at(itself)] = 1;
    const numbers shape{1, 64}, pair{1};
    const velo_tensor from = tensor_of(row.data(), u8, shape),
                      to = tensor_of(back.data(), u8, shape),
                      targets = tensor_of(&itself, i32, pair);
    if (done == VELO_OK)
      done = velo_group_dispatch(other, on.across[at(rank)], on.inside[at(rank)], &from, &targets,
                                 takes.data(), &to);
    if (done == VELO_OK) done = by_hosts(on, t, rank, last[at(rank)], one);
    for (const velo_stream stream : {one, other}) {
      const velo_status ended = velo_stream_synchronize(stream);
      if (done == VELO_OK) done = ended;
      velo_stream_destroy(stream);
    }
    return done == VELO_OK && back != row ? velo_status{VELO_ERR_INTERNAL} : done;
  });
  CHECK(first == plain);
  CHECK(last == plain);
}

TEST_CASE("dispatches that make no sense are refused by name, and end no group") {
  hosts on(1, 1);
  const velo_stream stream = on.all.stream(0);
  const velo_group inside = on.inside[0], across = on.across[0];
  std::vector<float> x(12), y(12);
  std::vector<std::int32_t> names(12, 0);
  const numbers three{3, 4}, four{4, 3}, none{}, pair{3, 1};
  const std::int64_t right[] = {3}, negative[] = {-1}, less[] = {2}, more[] = {4};
  const velo_tensor in = tensor_of(x.data(), f32, three), out = tensor_of(y.data(), f32, three),
                    to = tensor_of(names.data(), i32, pair);
  const auto call = [&](velo_group inside, velo_group across, const velo_tensor& from,
                        const velo_tensor& by, const std::int64_t* counts,
                        const velo_tensor& into) {
    return record_of(velo_group_dispatch(stream, inside, across, &from, &by, counts, &into));
  };
  const velo_tensor scalar = tensor_of(x.data(), f32, none), odd = tensor_of(y.data(), f32, four);
  const velo_tensor wide = tensor_of(names.data(), f32, pair),
                    long_to = tensor_of(names.data(), i32, four);
  CHECK_REFUSED(call(inside, inside, in, to, right, out), VELO_ERR_ARGUMENT, "across");
  CHECK_REFUSED(call(inside, across, scalar, to, right, out), VELO_ERR_RANK, "in");
  CHECK_REFUSED(call(inside, across, in, long_to, right, out), VELO_ERR_SHAPE, "targets");
  CHECK_REFUSED(call(inside, across, in, wide, right, out), VELO_ERR_DTYPE, "targets.dtype");
  CHECK_REFUSED(call(inside, across, in, to, right, tensor_of(y.data(), i32, three)),
                VELO_ERR_DTYPE, "out.dtype");
  CHECK_REFUSED(call(inside, across, in, to, right, odd), VELO_ERR_SHAPE, "out");
  CHECK_REFUSED(call(inside, across, in, to, nullptr, out), VELO_ERR_NULL, "out_counts");
  CHECK_REFUSED(call(inside, across, in, to, negative, out), VELO_ERR_ARGUMENT, "out_counts[0]");
  CHECK_REFUSED(call(inside, across, in, to, more, out), VELO_ERR_ARGUMENT, "out_counts[0]");
  CHECK_REFUSED(call(inside, across, in, to, less, out), VELO_ERR_SHAPE, "out");
  CHECK_REFUSED(call(inside, across, in, to, right, in), VELO_ERR_OVERLAP, "out");
  const live_context stranger;
  const velo_group_desc desc = group_desc();
  velo_group elsewhere = nullptr;
  REQUIRE(velo_group_create(stranger, &desc, &elsewhere) == VELO_OK);
  CHECK_REFUSED(call(inside, elsewhere, in, to, right, out), VELO_ERR_ARGUMENT, "across");
  CHECK_REFUSED(call(elsewhere, across, in, to, right, out), VELO_ERR_ARGUMENT, "stream");
  velo_group_destroy(elsewhere);
  CHECK(call(inside, across, in, to, right, out).code == VELO_OK);
  names[2] = 1;  // no rank: known once the work runs
  CHECK_REFUSED(call(inside, across, in, to, right, out), VELO_ERR_ARGUMENT, "targets[2]");
  names[2] = 0;  // a rank alone goes on
  CHECK(call(inside, across, in, to, right, out).code == VELO_OK);
}

TEST_CASE("a count that is not what a rank gives is named, wherever the rank is") {
  random_source32 random(9);
  for (const wrong_count& is : wrong_counts)
    for (const int off : {-1, 1}) {
      hosts on(is.hosts, is.per_host);
      traffic t(on.all.size(), 40, 32, 2, random);
      t.in[at(is.other)].resize(at(3 * t.width), 5);
      t.targets[at(is.other)] = {is.rank, -1, is.rank, is.rank, -1, -1};
      numbers wrong = t.got_by(is.rank);
      wrong[at(is.other)] += off;
      std::vector<bytes> got(at(on.all.size()));
      const std::vector<call_record> all = on.all.run([&](int rank) {
        return by_hosts(on, t, rank, got[at(rank)], nullptr, rank == is.rank ? wrong : numbers());
      });
      const call_record& one = all[at(is.rank)];
      INFO(is.hosts << " hosts of " << is.per_host << ", " << off << ": " << one);
      const bool own = is.rank == is.other;
      CHECK(one.code == (own ? VELO_ERR_ARGUMENT : VELO_ERR_PEER));
      CHECK(one.argument == "out_counts[" + std::to_string(is.other) + "]");
      CHECK(one.expected == "3, the rows that rank " + std::to_string(is.other) + " gives");
      CHECK(one.got == std::to_string(3 + off));
      if (!own) CHECK(one.rank == is.other);
      // A rank that finished its part before the fault was found fails in its next call.
      for (int rank = 0; rank < on.all.size(); ++rank) {
        if (rank == is.rank) continue;
        const call_record& other = all[at(rank)];
        INFO("rank " << rank << ": " << other);
        const bool together = rank / is.per_host == is.rank / is.per_host;
        CHECK(on.ended_inside(rank) == together);
        CHECK_FALSE(on.ended_across(rank));
        if (!together) CHECK(other.code == VELO_OK);
        if (other.code == VELO_OK) continue;
        CHECK(other.expected.find("dispatch") == 0);
        CHECK(other.cause == one.argument + " of rank " + std::to_string(is.rank));
      }
    }
}

TEST_CASE("a single rank whose counts differ from its rows fails before they are moved") {
  const live_context context;
  velo_group alone[2] = {nullptr, nullptr};
  velo_group_desc desc = group_desc();
  desc.transport = VELO_TRANSPORT_SELF;
  for (velo_group& one : alone) REQUIRE(velo_group_create(context, &desc, &one) == VELO_OK);
  std::vector<float> x(12, 1), y(12, 0);
  std::vector<std::int32_t> names = {0, 0, 0};
  const numbers three{3, 4}, two{2, 4}, each{3, 1}, counts{2};
  const velo_tensor in = tensor_of(x.data(), f32, three), to = tensor_of(names.data(), i32, each),
                    out = tensor_of(y.data(), f32, two);
  const velo_stream stream = context.inline_stream();
  call_record one =
      record_of(velo_group_dispatch(stream, alone[0], alone[1], &in, &to, counts.data(), &out));
  CHECK_REFUSED(one, VELO_ERR_ARGUMENT, "out_counts[0]");
  one = record_of(
      velo_group_combine(stream, alone[0], alone[1], &out, counts.data(), &to, nullptr, &in));
  CHECK_REFUSED(one, VELO_ERR_ARGUMENT, "in_counts[0]");
  CHECK(y == std::vector<float>(12, 0));
  for (const velo_group group : alone) velo_group_destroy(group);
}

TEST_CASE(
    "other rows than expected end the groups inside; a rank that cannot give its own ends both") {
  random_source32 random(8);
  const auto ended = [](const hosts& on, bool across, int rank) {
    return across ? on.ended_across(rank) : on.ended_inside(rank);
  };
  // Dispatches of t but for rank 2, whose targets are these.
  const auto with_targets_of_2 = [](const hosts& on, const traffic& t,
                                    std::vector<std::int32_t> wrong) {
    std::vector<bytes> got(4);
    return on.all.run([&](int rank) {
      if (rank != 2) return by_hosts(on, t, rank, got[at(rank)]);
      const numbers take = t.got_by(2), shape{t.rows(2), t.width}, out_shape{sum_of(take), t.width},
                    names{t.rows(2), t.each};
      got[2].resize(at(sum_of(take) * t.width));
      const velo_tensor from = tensor_of(const_cast<unsigned char*>(t.in[2].data()), u8, shape),
                        to = tensor_of(got[2].data(), u8, out_shape),
                        targets = tensor_of(wrong.data(), i32, names);
      return velo_group_dispatch(on.all.stream(2), on.inside[2], on.across[2], &from, &targets,
                                 take.data(), &to);
    });
  };
  SECTION("other rows") {
    hosts on(2, 2);
    const traffic t(4, 40, 32, 2, random);
    REQUIRE(t.rows(2) > 0);
    const std::vector<call_record> all =
        with_targets_of_2(on, t, std::vector<std::int32_t>(t.targets[2].size(), 1));
    // Rank 2's rows for host 0 come by its peer there, rank 0.
    REQUIRE(t.given(2, 0) > 0);
    CHECK_REFUSED(all[0], VELO_ERR_PEER, "out_counts[2]");
    CHECK(all[1].code == VELO_ERR_PEER);  // by its own count, or because of rank 0's
    CHECK((all[1].argument == "out_counts[2]" || all[1].cause == "out_counts[2] of rank 0"));
    for (int rank = 0; rank < 4; ++rank) {
      CHECK(ended(on, false, rank));
      CHECK_FALSE(ended(on, true, rank));
    }
    on.all.require(
        [&](int rank) { return velo_group_barrier(on.all.stream(rank), on.across[at(rank)]); });
  }
  SECTION("no rank") {
    hosts on(2, 2);
    const traffic t(4, 40, 32, 2, random);
    std::vector<std::int32_t> wrong = t.targets[2];
    REQUIRE(wrong.size() > 3);
    wrong[3] = 4;
    const std::vector<call_record> all = with_targets_of_2(on, t, wrong);
    CHECK_REFUSED(all[2], VELO_ERR_ARGUMENT, "targets[3]");
    CHECK(all[0].code == VELO_ERR_PEER);  // across
    CHECK(all[0].got == "rank 1 that could not do its part");
    CHECK(all[3].code == VELO_ERR_PEER);  // inside
    CHECK(all[3].got == "rank 0 that could not do its part");
    for (const int rank : {0, 3}) {  // by rank 2, or by a rank that came later
      const std::string& cause = all[at(rank)].cause;
      CHECK((cause == all[2].cause || cause == "another group has ended"));
    }
    CHECK(all[1].code == VELO_ERR_PEER);  // by rank 0, which could not go on
    for (int rank : {0, 2}) {
      CHECK(ended(on, true, rank));
      CHECK(ended(on, false, rank));
    }
  }
  SECTION("a rank with a group that has ended before") {
    hosts on(2, 2);
    const traffic t(4, 40, 32, 2, random);
    const bool across = GENERATE(false, true);
    REQUIRE(velo_group_abort((across ? on.across : on.inside)[3]) == VELO_OK);
    std::vector<bytes> got(4);
    const std::vector<call_record> all =
        on.all.run([&](int rank) { return by_hosts(on, t, rank, got[at(rank)]); });
    for (const call_record& one : all) {
      INFO(one);
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.got.find("not there") == std::string::npos);  // by a deadline
    }
  }
  SECTION("nobody") {
    hosts on(2, 2, 150);
    const traffic t(4, 40, 32, 2, random);
    std::vector<bytes> got(4);
    const std::vector<call_record> all = on.all.run([&](int rank) {
      return rank == 3 ? velo_status{VELO_OK} : by_hosts(on, t, rank, got[at(rank)]);
    });
    CHECK(all[1].code == VELO_ERR_PEER);
    CHECK(all[1].rank == 1);  // of the ranks across
    CHECK(all[0].code == VELO_ERR_PEER);
    CHECK(all[2].code == VELO_ERR_PEER);
    for (const bool across : {true, false})
      for (const int rank : {1, 3}) CHECK(ended(on, across, rank));
    CHECK(record_of(velo_group_barrier(on.all.stream(1), on.inside[1])).code == VELO_ERR_PEER);
    CHECK(record_of(velo_group_barrier(on.all.stream(1), on.across[1])).code == VELO_ERR_PEER);
  }
}
