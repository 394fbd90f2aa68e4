// Endurance: groups that are made and end with ranks killed, aborted or well, random all_to_all_v,
// endless sums of eight bytes, counters beyond 32 bits. The environment sets the number of rounds;
// the default is small.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "comm/processes.hpp"
#include "comm/transport/shm/sockets.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

std::int64_t rounds_of(const char* variable, std::int64_t few) {
  const char* setting = std::getenv(variable);
  const std::int64_t rounds = setting == nullptr ? few : std::atoll(setting);
  REQUIRE(rounds > 0);
  return rounds;
}

// The other rank: sums until something ends it.
[[noreturn]] void sum_until_the_end(const velo_group_desc& desc) {
  rank_of_group me;
  velo_status done = join_group(me, desc);
  std::vector<float> x(30000, 0.0f);
  while (done == VELO_OK) done = reduce_in_place(me.stream, me.group, x);
  _exit(done == VELO_ERR_PEER ? 0 : 1);
}

// A group with another process, ended in one of three ways; 0: all was as it should be.
std::int64_t one_cycle(const rank_of_group& me, const std::string& name, int how) {
  const pid_t other = fork();
  if (other == 0) sum_until_the_end(shm_desc(name, 1, 2, 60000));
  const velo_group_desc desc = shm_desc(name, 0, 2, 60000);
  velo_group group = nullptr;
  std::int64_t wrong = velo_group_create(me.context, &desc, &group) != VELO_OK;
  std::vector<float> x(30000, 0.0f);
  const auto sum = [&] { return reduce_in_place(me.stream, group, x); };
  wrong += sum() != VELO_OK;
  if (how == 0) kill(other, SIGKILL);
  if (how == 1) velo_group_abort(group);
  velo_status ended = VELO_OK;
  if (how != 2)
    while (ended == VELO_OK) ended = sum();
  wrong += how != 2 && ended != VELO_ERR_PEER;
  velo_group_destroy(group);
  int code = -1;
  waitpid(other, &code, 0);
  if (how != 0) wrong += code != 0;  // the other rank fails
  return wrong;
}

// An all_to_all_v as all ranks draw it alike: counts, and parts in any order with holes between
// them.
struct exchange_case {
  exchange_case(thread_random& random, int ranks)
      : n(ranks),
        counts(static_cast<std::size_t>(ranks * ranks)),
        in_offsets(counts),
        out_offsets(counts),
        in_sizes(static_cast<std::size_t>(ranks)),
        out_sizes(in_sizes) {
    const auto below = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(random.below(most));
    };
    bits = 8 << below(4);
    const std::uint64_t most = below(50) == 0 ? 20000 : 40;
    for (std::int64_t& one : counts) one = below(3) == 0 ? 0 : below(most);
    for (int rank = 0; rank < n; ++rank) {
      // Parts of in may lie over each other, those of out begin in an order of chance.
      std::int64_t end = below(5);
      const int first = static_cast<int>(below(static_cast<std::uint64_t>(n)));
      for (int i = 0; i < n; ++i) {
        const int from = (first + i) % n;
        out_offsets[pair(rank, from)] = end;
        end += counts[pair(from, rank)] + below(4);
        in_offsets[pair(rank, i)] = below(30);
        in_sizes[at(rank)] =
            std::max(in_sizes[at(rank)], in_offsets[pair(rank, i)] + counts[pair(rank, i)]);
      }
      out_sizes[at(rank)] = end;
    }
  }
  std::size_t pair(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(n) + static_cast<std::size_t>(b);
  }

  const int n;
  int bits;
  std::vector<std::int64_t> counts;                   // of a for b
  std::vector<std::int64_t> in_offsets, out_offsets;  // of rank a, for or from b
  std::vector<std::int64_t> in_sizes, out_sizes;
};

// Sums of one number of each of two ranks, which are whole and known; INTERNAL: one was wrong.
velo_status sum_one(velo_stream stream, velo_group group, int rank, std::int64_t rounds) {
  const std::int64_t one = 1;
  double mine = 0, sum = 0;
  const velo_tensor in = view_of(&mine, f64, one), out = view_of(&sum, f64, one);
  for (std::int64_t i = 0; i < rounds; ++i) {
    mine = static_cast<double>(2 * i + rank);
    const velo_status done = velo_group_all_reduce(stream, group, nullptr, &in, &out);
    if (done != VELO_OK) return done;
    if (sum != static_cast<double>(4 * i + 1)) return VELO_ERR_INTERNAL;
  }
  return VELO_OK;
}

unsigned char byte_of(std::int64_t round, int rank, std::int64_t i) {
  return static_cast<unsigned char>(round * 7 + rank * 31 + i * 13 + (i >> 8));
}

velo_status run_case(const local_ranks& ranks, int rank, const exchange_case& is,
                     std::int64_t round) {
  const std::size_t self = at(rank);
  const std::int64_t size = is.bits / 8;
  std::vector<unsigned char> in(static_cast<std::size_t>(is.in_sizes[self] * size) + 8),
      out(static_cast<std::size_t>(is.out_sizes[self] * size) + 8, 0xa5);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = byte_of(round, rank, static_cast<std::int64_t>(i));
  std::vector<std::int64_t> give, take;
  for (int peer = 0; peer < is.n; ++peer) {
    give.push_back(is.counts[is.pair(rank, peer)]);
    take.push_back(is.counts[is.pair(peer, rank)]);
  }
  const velo_dtype dtype{VELO_DTYPE_UINT, static_cast<std::uint8_t>(is.bits), 1};
  const velo_tensor from = view_of(in.data(), dtype, is.in_sizes[self]),
                    to = view_of(out.data(), dtype, is.out_sizes[self]);
  const velo_status done = velo_group_all_to_all_v(
      ranks.stream(rank), ranks.group(rank), &from, give.data(), &is.in_offsets[is.pair(rank, 0)],
      take.data(), &is.out_offsets[is.pair(rank, 0)], &to);
  if (done != VELO_OK) return done;
  std::vector<unsigned char> expected(out.size(), 0xa5);
  for (int peer = 0; peer < is.n; ++peer)
    for (std::int64_t i = 0; i < take[at(peer)] * size; ++i)
      expected[static_cast<std::size_t>(is.out_offsets[is.pair(rank, peer)] * size + i)] =
          byte_of(round, peer, is.in_offsets[is.pair(peer, rank)] * size + i);
  return out == expected ? VELO_OK : VELO_ERR_INTERNAL;
}

}  // namespace

TEST_CASE("groups come and go, also with ranks killed or aborted, and nothing is left of them") {
  const std::int64_t cycles = rounds_of("VELO_CYCLES", 12);
  processes ranks;
  const std::string name = processes::name();
  ranks.start([&] {
    rank_of_group me;
    ending all = ending_of(open_context(me));
    if (all.code != VELO_OK) return all;
    thread_random32 random(3);
    for (int how = 0; how < 3; ++how) all.value += one_cycle(me, name, how);
    const holdings before;
    for (std::int64_t i = 0; i < cycles; ++i)
      all.value += one_cycle(me, name, static_cast<int>(random.below(3)));
    all.at_ns = holdings().beyond(before);
    velo_context_destroy(me.context);
    return all;
  });
  const ending one = ranks.wait()[0];
  CHECK(one.code == VELO_OK);
  CHECK(one.value == 0);
  CHECK(one.at_ns == 0);  // holdings
  CHECK(entries_of(velo::comm::rendezvous_folder(), name).empty());
}

TEST_CASE("all_to_all_v of any counts and places, over and over") {
  const std::int64_t rounds = rounds_of("VELO_EXCHANGES", 1500);
  for (const int size : {2, 3, 5}) {
    velo_group_desc desc = group_desc(600000);
    desc.buffer = 8 << 10;
    const local_ranks ranks(size, desc);
    ranks.require([&](int rank) {
      thread_random random(11);
      for (std::int64_t round = 0; round < (rounds + 2) / 3; ++round) {
        const exchange_case is(random, size);
        const velo_status done = run_case(ranks, rank, is, round);
        if (done != VELO_OK) return done;
      }
      return velo_status{VELO_OK};
    });
  }
}

TEST_CASE("sums of one number, over and over, are right and stay in order") {
  const std::int64_t rounds = rounds_of("VELO_SUMS", 5000);
  const local_ranks ranks(2, group_desc(600000));
  ranks.require(
      [&](const rank_of_group& me) { return sum_one(me.stream, me.group, me.rank, rounds); });
}

TEST_CASE("sums of one number between processes, over and over, are right and stay in order") {
  const std::int64_t rounds = rounds_of("VELO_SUMS", 5000);
  processes ranks;
  ranks.start_all(2, group_desc(600000), [&](const rank_of_group& me) {
    return ending_of(sum_one(me.stream, me.group, me.rank, rounds));
  });
  for (const ending& one : ranks.wait()) CHECK_OK(one);
}

TEST_CASE("all_to_all_v of more than 2^31 elements", "[.large]") {
  const std::int64_t more = (std::int64_t{1} << 31) + 17, little = 3;
  const auto area = [](std::int64_t bytes) {
    void* memory = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return static_cast<unsigned char*>(memory);
  };
  // Rank 0 gives rank 1 much, and is given little, behind as much that nobody touches.
  const std::int64_t sizes[2] = {more, more + little};
  unsigned char* in[2] = {area(sizes[0]), area(sizes[1])};
  unsigned char* out[2] = {area(sizes[1]), area(sizes[0])};
  for (std::int64_t i = 0; i < more; i += 8) {
    const std::uint64_t word = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u;
    std::memcpy(in[0] + i, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, more - i)));
  }
  std::memcpy(in[1] + more, "abc", 3);
  const local_ranks ranks(2, group_desc(600000));
  ranks.require([&](int rank) {
    const velo_tensor from = view_of(in[rank], u8, sizes[rank]),
                      to = view_of(out[rank], u8, sizes[1 - rank]);
    const std::int64_t give[2][2] = {{0, more}, {little, 0}}, take[2][2] = {{0, little}, {more, 0}},
                       in_at[2][2] = {{0, 0}, {more, 0}}, out_at[2][2] = {{0, more}, {0, 0}};
    return velo_group_all_to_all_v(ranks.stream(rank), ranks.group(rank), &from, give[rank],
                                   in_at[rank], take[rank], out_at[rank], &to);
  });
  CHECK(std::memcmp(out[1], in[0], static_cast<std::size_t>(more)) == 0);
  CHECK(std::memcmp(out[0] + more, "abc", 3) == 0);
  for (int rank = 0; rank < 2; ++rank) {
    munmap(in[rank], static_cast<std::size_t>(sizes[rank]));
    munmap(out[rank], static_cast<std::size_t>(sizes[1 - rank]));
  }
}
