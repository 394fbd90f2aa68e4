// Tensors in shared pools, which peers read in place: the bits equal those of staged tensors, a
// tensor elsewhere makes all ranks stage, and a fault ends the group as well.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdlib>

#include "comm/collective/every_collective.hpp"
#include "comm/lateness.hpp"
#include "comm/processes.hpp"
#include "comm/transport/shared/peer_mappings.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

// Memory of a pool that does not begin at a cache line.
class block {
 public:
  block(velo_pool pool, std::int64_t bytes, velo_lifetime lifetime = VELO_LIFETIME_DEFAULT)
      : pool_(pool), bytes_(bytes + shift) {
    velo_pool_request want = request_of(static_cast<std::uint64_t>(bytes_));
    want.lifetime = lifetime;
    if (velo_pool_allocate(pool, &want, &memory_) != VELO_OK) std::abort();  // the parent tells
  }
  ~block() { velo_pool_free(pool_, memory_, static_cast<std::uint64_t>(bytes_), nullptr); }
  block(const block&) = delete;
  unsigned char* data() const { return static_cast<unsigned char*>(memory_) + shift; }

 private:
  static constexpr std::int64_t shift = 24;
  velo_pool pool_;
  std::int64_t bytes_;
  void* memory_ = nullptr;
};

struct view {
  view(unsigned char* data, std::int64_t count, velo_dtype dtype = f32)
      : count(count), tensor(view_of(data, dtype, this->count)) {}
  view(const view&) = delete;
  const std::int64_t count;
  const velo_tensor tensor;
};

// A rank whose group has a pool, with what a test asks for.
struct pooled : rank_of_group {
  velo_pool pool = nullptr;

  std::int64_t in_place() const {
    const std::string text = description_of(group);
    const std::size_t at = text.find(R"("in_place":)");
    return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + 11);
  }
};

velo_pool shared_pool() {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = VELO_POOL_SHARED;
  velo_pool made = nullptr;
  velo_pool_create(&desc, &made);
  return made;
}

void start_pooled(processes& ranks, int size, const std::function<ending(const pooled&)>& body,
                  std::int64_t timeout_ms = 20000, int without = -1) {
  const std::string name = processes::name();
  for (int rank = 0; rank < size; ++rank)
    ranks.start([=] {
      pooled me;
      me.pool = shared_pool();
      velo_group_desc desc = shm_desc(name, rank, size, timeout_ms);
      desc.pool = rank == without ? nullptr : me.pool;
      const velo_status joined = join_group(me, desc);
      if (joined != VELO_OK) return ending_of(joined);
      ending all = body(me);
      velo_context_destroy(me.context);
      velo_pool_destroy(me.pool);
      return all;
    });
}

constexpr velo_collective_kind calls[] = {
    VELO_COLLECTIVE_ALL_REDUCE, VELO_COLLECTIVE_REDUCE_SCATTER, VELO_COLLECTIVE_REDUCE_SCATTER_V,
    VELO_COLLECTIVE_ALL_GATHER, VELO_COLLECTIVE_ALL_GATHER_V,   VELO_COLLECTIVE_ALL_TO_ALL,
    VELO_COLLECTIVE_BROADCAST};

// Calls with `each` elements for each rank, or as many in uneven parts.
velo_status carry_out(const rank_of_group& me, velo_collective_kind what, std::int64_t each,
                      velo_dtype dtype, unsigned char* in, unsigned char* out) {
  const std::int64_t all = each * me.size;
  std::vector<std::int64_t> counts(at(me.size), each);
  counts[0] += each / 2, counts.back() -= each / 2;
  const bool gathers_v = what == VELO_COLLECTIVE_ALL_GATHER_V,
             scatters_v = what == VELO_COLLECTIVE_REDUCE_SCATTER_V;
  const std::int64_t part = gathers_v || scatters_v ? counts[at(me.rank)] : each;
  const view x(in, gathers_v || what == VELO_COLLECTIVE_ALL_GATHER ? part : all, dtype),
      y(out, scatters_v || what == VELO_COLLECTIVE_REDUCE_SCATTER ? part : all, dtype);
  const bool spreads = what == VELO_COLLECTIVE_BROADCAST;
  if (spreads) std::memcpy(out, in, at(all * dtype.bits / 8));
  velo_collective_desc desc =
      collective_of(what, spreads ? &y.tensor : &x.tensor, &y.tensor, me.size - 1);
  desc.in_counts = desc.out_counts = counts.data();
  return call(me.stream, me.group, desc);
}

void fill(unsigned char* at, std::int64_t count, velo_dtype dtype, int seed) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>((i * 37 + seed * 101) % 1009) / 3;
    if (dtype.bits == 32) std::memcpy(at + 4 * i, &value, 4);
    const std::uint16_t half = velo::simd::to_bf16(value).bits;
    if (dtype.bits == 16) std::memcpy(at + 2 * i, &half, 2);
  }
}

// Every call on pool memory, into other memory of the pool and into its own where it may be, beside
// the same on memory that is the process's own; how many differ, and how many were read in place.
ending compare(const pooled& me, std::int64_t each, bool one_lies_elsewhere) {
  ending report;
  int seed = 0;
  for (const velo_dtype dtype : {f32, bf16})
    for (const velo_collective_kind what : calls)
      for (const velo_lifetime lifetime : {VELO_LIFETIME_DEFAULT, VELO_LIFETIME_LONG}) {
        const std::int64_t count = 2 * each * me.size, bytes = count * dtype.bits / 8;
        const block in(me.pool, bytes, lifetime), out(me.pool, bytes, lifetime);
        std::vector<unsigned char> own_in(static_cast<std::size_t>(bytes)), own_out(own_in);
        fill(own_in.data(), count, dtype, ++seed + 7 * me.rank);
        std::memcpy(in.data(), own_in.data(), own_in.size());
        std::memset(out.data(), 0, own_out.size());
        const bool elsewhere = one_lies_elsewhere && me.rank == me.size - 1;
        velo_status done = carry_out(me, what, each, dtype, own_in.data(), own_out.data());
        if (done == VELO_OK)
          done =
              carry_out(me, what, each, dtype, elsewhere ? own_in.data() : in.data(), out.data());
        if (done != VELO_OK) return ending_of(done);
        report.value += std::memcmp(own_out.data(), out.data(), own_out.size()) != 0;
        if (what != VELO_COLLECTIVE_ALL_REDUCE) continue;
        done = carry_out(me, what, each, dtype, in.data(), in.data());
        if (done != VELO_OK) return ending_of(done);
        report.value += std::memcmp(in.data(), own_out.data(),
                                    static_cast<std::size_t>(each * me.size * dtype.bits / 8)) != 0;
      }
  report.in_place = me.in_place();
  report.code = VELO_OK;
  return report;
}

}  // namespace

TEST_CASE("tensors in shared pools are read in place, with the bits of staged ones") {
  struct {
    int size;
    std::int64_t each;
  } const cases[] = {{2, 8193}, {2, 300007}, {3, 16001}, {4, 8193}};
  for (const auto [size, each] : cases) {
    INFO(size << " ranks, " << each << " elements for each");
    processes ranks;
    start_pooled(ranks, size, [each = each](const pooled& me) { return compare(me, each, false); });
    for (const ending& one : ranks.wait()) {
      CHECK_OK(one);
      CHECK(one.value == 0);
      CHECK(one.in_place == 2 * 2 * 8);  // of two dtypes and lifetimes
    }
  }
}

TEST_CASE("a tensor that lies elsewhere has all of them staged, with the same bits") {
  processes ranks;
  start_pooled(ranks, 3, [](const pooled& me) { return compare(me, 8193, true); });
  for (const ending& one : ranks.wait()) {
    CHECK_OK(one);
    CHECK(one.value == 0);
    CHECK(one.in_place ==
          2 * 2 * 2);  // of a broadcast's the root's alone is looked at; sums in place
  }
  start_pooled(
      ranks, 3, [](const pooled& me) { return compare(me, 8193, false); }, 20000, 1);
  for (const ending& one : ranks.wait()) {
    CHECK_OK(one);
    CHECK(one.value == 0);
    CHECK(one.in_place == 2 * 2);  // broadcasts, whose root registers memory
  }
}

TEST_CASE("parts and survivors read what lies in the pools of their parent's ranks") {
  processes ranks;
  start_pooled(ranks, 3, [](const pooled& me) {
    const std::int64_t count = 20000;
    const block x(me.pool, 4 * count);
    fill(x.data(), count, f32, 0);
    const view sum(x.data(), count);
    const auto reduce = [&](velo_group group) {
      return velo_group_all_reduce(me.stream, group, nullptr, &sum.tensor, &sum.tensor);
    };
    const std::int32_t chosen[] = {2, 0};
    pooled inside = me;
    ending report;
    if (me.rank != 1) {
      if (velo_group_create_part(me.group, chosen, 2, nullptr, &inside.group) != VELO_OK ||
          reduce(inside.group) != VELO_OK)
        return ending();
      report.value = inside.in_place();
      velo_group_destroy(inside.group);
    }
    if (velo_group_barrier(me.stream, me.group) != VELO_OK) return ending();
    if (me.rank == 0) _exit(0);
    if (reduce(me.group) != VELO_ERR_PEER ||
        velo_group_shrink(me.group, nullptr, &inside.group) != VELO_OK)
      return ending();
    fill(x.data(), count, f32, me.rank);
    report.code = reduce(inside.group);
    report.value += inside.in_place();
    return report;
  });
  const std::vector<ending> all = ranks.wait();
  CHECK(all[1].code == VELO_OK);
  CHECK(all[1].value == 1);
  CHECK(all[2].code == VELO_OK);
  CHECK(all[2].value == 2);
}

TEST_CASE("a rank killed while others read its memory is named to them, within 150 ms") {
  processes ranks;
  start_pooled(ranks, 3, [](const pooled& me) {
    const std::int64_t count = 1 << 20;
    const block x(me.pool, 4 * count), y(me.pool, 4 * count);
    const view in(x.data(), count), out(y.data(), count);
    while (true) {
      const velo_status done =
          velo_group_all_reduce(me.stream, me.group, nullptr, &in.tensor, &out.tensor);
      if (done == VELO_OK) continue;
      return ending_of(done, me.in_place());
    }
  });
  const lateness late_by;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  REQUIRE(kill(ranks.pid(1), SIGKILL) == 0);
  const std::int64_t killed = monotonic_ns();
  const std::vector<ending> all = ranks.wait();
  for (const int rank : {0, 2}) {
    const ending& one = all[at(rank)];
    INFO(one);
    CHECK(one.code == VELO_ERR_PEER);
    CHECK(one.rank == 1);
    CHECK(one.value > 0);
    CHECK(static_cast<double>(one.at_ns - killed) / 1e6 < 150 + late_by.of_ms(4));
  }
}

TEST_CASE("a pool that is not shared, or is no pool, makes no group") {
  processes ranks;
  ranks.start([] {
    ending report;
    velo_context context = nullptr;
    velo_pool ordinary = nullptr;
    if (velo_context_create(nullptr, &context) != VELO_OK ||
        velo_pool_create(nullptr, &ordinary) != VELO_OK)
      return report;
    velo_group_desc desc = group_desc();
    desc.pool = ordinary;
    velo_group made = nullptr;
    report = ending_of(velo_group_create(context, &desc, &made));
    velo_pool_destroy(ordinary);
    report.value = velo_group_create(context, &desc, &made);
    velo_context_destroy(context);
    return report;
  });
  const ending one = ranks.wait()[0];
  CHECK(one.code == VELO_ERR_ARGUMENT);
  CHECK(one.expected.find("VELO_POOL_SHARED") != std::string::npos);
  CHECK(one.value == VELO_ERR_HANDLE);
}

TEST_CASE("addresses of a pool that was destroyed are no place in its file") {
  velo_pool_desc desc = VELO_POOL_DESC_INIT;
  desc.kind = VELO_POOL_SHARED;
  velo_pool pool = nullptr;
  REQUIRE(velo_pool_create(&desc, &pool) == VELO_OK);
  static const char bytes[4096] = {};
  auto own = std::make_shared<velo::comm::registered_files>();
  own->push_back({velo::comm::descriptor(), bytes, sizeof bytes, pool});
  const velo::comm::peer_mappings all(own, {});
  CHECK(all.find(bytes, 64) != velo::comm::peer_mappings::unmapped);
  velo_pool_destroy(pool);
  CHECK(all.find(bytes, 64) == velo::comm::peer_mappings::unmapped);
}

TEST_CASE("a mapping grows with what is read through it, and places outside of a file are none") {
  using velo::comm::descriptor;
  using velo::comm::peer_mappings;
  constexpr std::int64_t size = std::int64_t{8} << 20;
  descriptor file(memfd_create("velo_test", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), size) == 0);
  char* begin =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  for (std::int64_t at = 0; at < size; at += 4096) begin[at] = static_cast<char>(at / 4096 % 127);
  auto own = std::make_shared<velo::comm::registered_files>();
  own->push_back({descriptor(dup(file.get())), begin, std::uint64_t{1} << 30});
  std::vector<std::vector<descriptor>> peers(2);
  peers[1].push_back(std::move(file));
  peer_mappings all(own, std::move(peers));

  CHECK(all.find(begin - 1, 1) == peer_mappings::unmapped);
  CHECK(all.find(begin + 10, (std::int64_t{1} << 30) - 9) == peer_mappings::unmapped);
  CHECK(all.find(nullptr, 0) == peer_mappings::unread);
  CHECK(peer_mappings(nullptr, {}).find(begin, 1) == peer_mappings::unmapped);
  bool same = true;
  for (const std::int64_t at : {std::int64_t{4096}, size / 2, size - 4096, std::int64_t{0}})
    same = same && *all.address(1, all.find(begin + at, 4096), 4096) == begin[at];
  CHECK(same);
  const peer_mappings::location known = all.find(begin, 4096);
  CHECK(all.address(1, known | 2, 4096) ==
        nullptr);                                 // the second file, of a rank that registers one
  CHECK(all.address(0, known, 4096) == nullptr);  // of a rank that registers none
  CHECK(all.address(1, peer_mappings::unread, 4096) == nullptr);
  const peer_mappings::location last = all.find(begin + size - 4096, 4096);
  CHECK(all.address(1, last, 4097) == nullptr);  // beyond what the file has
  CHECK(all.address(1, ~peer_mappings::location{0} << 2 | 1, 4096) == nullptr);
  munmap(begin, size);
}
