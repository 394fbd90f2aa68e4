// Rounds and relays over a bare area: ranks that stop, slots, counters, faults, sets of ranks.
#include "comm/transport/shared/shared_round.hpp"

#include <sys/mman.h>

#include "comm/ranks.hpp"
#include "comm/transport/shared/shared_relay.hpp"
#include "core/fails.hpp"
#include "core/stream/stream.hpp"
#include "tests/threads.hpp"

using namespace velo::testing;
namespace comm = velo::comm;
namespace core = velo::core;

namespace {

// An area, and the context of each of its ranks.
class area_of {
 public:
  explicit area_of(int ranks, std::int64_t timeout_ms) {
    const std::size_t slot = comm::shared_area::least_slot(ranks);
    const std::size_t bytes = comm::shared_area::bytes_for(ranks, slot);
    memory_.reset(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                  [bytes](void* p) { munmap(p, bytes); });
    const comm::shared_area area(memory_.get(), ranks, slot, core::sleepers::of_process);
    for (int rank = 0; rank < ranks; ++rank)
      contexts_.push_back({area, rank, timeout_ms * 1000000, 0, nullptr,
                           std::vector<const void*>(velo::testing::at(ranks)), 0, 0});
  }
  comm::rank_context& at(int rank) { return contexts_[velo::testing::at(rank)]; }

 private:
  std::shared_ptr<void> memory_;
  std::vector<comm::rank_context> contexts_;
};

// Runs body(round) as work that waits and returns the failure that ended it.
template <class Body>
call_record run_round(comm::rank_context& self, Body&& body) {
  rank_of_group me;
  call_record ended;
  if (open_context(me) != VELO_OK) return ended;
  core::context& owner = core::resolve<core::context>(me.context, "context");
  owner.inline_stream().run_waiting([&](core::execution& state) {
    comm::operation op;
    op.terms.kind = comm::collective::all_reduce;
    comm::shared_round round(self, op, state);
    ended = thrown_by([&] { body(round); });
  });
  velo_context_destroy(me.context);
  return ended;
}

// A barrier of two threads, which leave it within nanoseconds, one of them `apart` loads later.
void synchronize(std::atomic<int>& arrived, int round, int apart) {
  ++arrived;
  for (int looks = 0; arrived < 2 * (round + 1); ++looks)
    if (looks > 2000) std::this_thread::yield();
  for (int looks = 0; looks < apart; ++looks) static_cast<void>(arrived.load());
}

}  // namespace

TEST_CASE("a rank that stops in the middle of a collective is the one that is named") {
  area_of area(3, 150);
  call_record ended[3];
  on_threads(3, [&](int rank) {
    ended[rank] = run_round(area.at(rank), [rank](comm::shared_round& round) {
      round.run_steps(
          {10, 0}, [](std::int64_t) {},
          [&](std::int64_t step) {
            if (rank == 1 && step == 2) velo::core::fail(VELO_ERR_IO, "", "to go on", "a stop");
          });
    });
  });
  CHECK(ended[1].code == VELO_ERR_IO);
  for (const int rank : {0, 2}) {
    CHECK_PEER(ended[rank], 1, "rank 1 not there");
  }
}

// Runs a function at each check of a waiting rank, which is between the awaited word and the
// deadline.
class at_each_check final : public comm::liveness_watch {
 public:
  explicit at_each_check(std::function<void()> act) : act_(std::move(act)) {}
  bool find_gone(comm::rank_set&, char (&)[128]) noexcept override {
    act_();
    return false;
  }

 private:
  const std::function<void()> act_;
};

TEST_CASE("a rank that posts just before the deadline is not late, and no other rank is named") {
  area_of area(3, 5);
  const auto come = [&](int rank) {
    return run_round(area.at(rank), [](comm::shared_round& round) { round.post(); }).code;
  };
  CHECK(come(2) == VELO_OK);
  const auto begin = std::chrono::steady_clock::now();
  bool has_come = false;
  at_each_check comes_late([&] {
    const std::chrono::milliseconds deadline{5};
    if (std::chrono::steady_clock::now() - begin < deadline)
      std::this_thread::sleep_for(deadline);  // the next check is beyond it
    else if (!std::exchange(has_come, true))
      come(1);
  });
  area.at(0).watch = &comes_late;
  const call_record ended = run_round(area.at(0), [](comm::shared_round& round) {
    round.post();
    round.wait_all();
  });
  CHECK(has_come);
  CHECK_OK(ended);
}

TEST_CASE(
    "a rank that stops in the middle of a relay is named, and none of those that wait for it") {
  enum class stop { before_reading, before_the_end };
  for (const stop at : {stop::before_reading, stop::before_the_end}) {
    area_of area(3, 100);
    call_record ended[3];
    on_threads(3, [&](int rank) {
      ended[rank] = run_round(area.at(rank), [&](comm::shared_round& round) {
        --area.at(rank).operations;  // the relay replaces this round
        {
          comm::shared_relay pieces(area.at(rank), round.op, round.state, true);
          pieces.wait_slot();
          pieces.post();
          pieces.wait_piece();
          if (rank == 1 && at == stop::before_reading) return;
          pieces.release();
          if (at == stop::before_reading) pieces.wait_readers();
          if (rank == 1) return;
          pieces.finish();
        }
        comm::shared_round next(area.at(rank), round.op, round.state);
        next.run_steps(
            {2, 0}, [](std::int64_t) {}, [](std::int64_t) {});
      });
    });
    CHECK(ended[1].code == VELO_OK);
    for (const int rank : {0, 2}) {
      CHECK(ended[rank].code == VELO_ERR_PEER);
      CHECK(ended[rank].got == "rank 1 not there");
    }
  }
}

TEST_CASE("staged bytes stay in their slot until all ranks have read them, for every used span") {
  constexpr int steps = 700;
  const int ranks = GENERATE(2, 4);
  const std::int64_t slot = static_cast<std::int64_t>(comm::shared_area::least_slot(ranks));
  const std::int64_t span = std::min(slot, GENERATE(as<std::int64_t>(), 8, 4096, 4224, 1 << 20));
  area_of area(ranks, 20000);
  comm::cache_probe shared;
  for (int look = 0; look < comm::cache_probe::probes_to_switch; ++look) shared.record(0);
  for (int rank = 1; rank < ranks; rank += 2)  // every second rank shifts its slots
    area.at(rank).writer = comm::peer_writer(shared);
  std::atomic<int> wrong{0};
  on_threads(ranks, [&](int rank) {
    const call_record ended = run_round(area.at(rank), [&](comm::shared_round& round) {
      round.run_steps(
          {steps, span},
          [&](std::int64_t step) {
            const std::int64_t mine = step * ranks + rank;
            for (const std::int64_t at : {std::int64_t{0}, span - 8})
              std::memcpy(round.own_slot() + at, &mine, sizeof mine);
          },
          [&](std::int64_t step) {
            if (step % 97 == rank) std::this_thread::sleep_for(std::chrono::microseconds(50));
            for (int peer = 0; peer < ranks; ++peer)
              for (const std::int64_t at : {std::int64_t{0}, span - 8}) {
                std::int64_t theirs = 0;
                std::memcpy(&theirs, round.peer_slot(peer) + at, sizeof theirs);
                wrong += theirs != step * ranks + peer;
              }
          });
    });
    wrong += ended.code != VELO_OK;
  });
  CHECK(wrong == 0);
}

TEST_CASE("ranks probe for a shared cache where they stage a page or more") {
  const bool looks = GENERATE(true, false);
  const std::int64_t span = comm::peer_writer::least_probed_bytes - (looks ? 0 : 1);
  area_of area(2, 20000);
  bool ended_well[2] = {}, looked[2] = {};
  on_threads(2, [&](int rank) {
    const auto nothing = [](std::int64_t) {};
    const auto stage = [&](comm::shared_round& round) {
      round.run_steps({1, span}, nothing, nothing);
    };
    bool well = true;
    for (int round = 0; round < 64; ++round) {
      well = run_round(area.at(rank), stage).code == VELO_OK && well;
      looked[rank] = looked[rank] || !area.at(rank).writer.probe().is_due();
    }
    ended_well[rank] = well;
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(ended_well[rank]);
    CHECK(looked[rank] == looks);
  }
}

TEST_CASE(
    "the used span of a slot shifts with every second step, through the whole slot and not beyond "
    "it") {
  const std::size_t slot = std::size_t{64} << 10;
  for (const int ranks : {2, 3, 4, 8}) {
    const std::size_t bytes = comm::shared_area::needed_for(ranks, slot);
    std::vector<char> memory(bytes);
    const comm::shared_area area(memory.data(), ranks, slot, core::sleepers::of_process);
    for (const std::size_t span : {std::size_t{4096}, std::size_t{5120}, slot}) {
      const char* const first = area.slot(ranks - 1, 0, area.slot_shift(0, span));
      const char* next = first;
      for (std::uint64_t step = 0; step < 200; ++step) {
        const char* const at = area.slot(ranks - 1, step, area.slot_shift(step, span));
        REQUIRE(at + span <= memory.data() + bytes);
        if (step % 2 == 0 && at != first) REQUIRE(at == next);
        if (step % 2 == 0) next = at + span;
      }
      CHECK((area.slot_shift(2, span) != 0) == (span < slot));
    }
    CHECK(area.slot_shift(2, 2048) == 0);
  }
}

TEST_CASE("counters exceed 32 bits, and ranks that sleep on them wake") {
  area_of area(2, 60000);
  constexpr std::uint64_t first = (std::uint64_t{1} << 32) - 4;
  for (int rank = 0; rank < 2; ++rank) {
    area.at(rank).operations = area.at(rank).steps = first;
    area.at(rank).area.state(rank).steps = first;
  }
  call_record ended[2];
  on_threads(2, [&](int rank) {
    for (int i = 0; i < 8 && ended[rank].code == VELO_OK; ++i)
      ended[rank] = run_round(area.at(rank), [&](comm::shared_round& round) {
        if (i % 2 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        round.run_steps(
            {2, 0}, [](std::int64_t) {}, [](std::int64_t) {});
      });
  });
  for (const call_record& one : ended) CHECK(one.code == VELO_OK);
  CHECK(area.at(0).operations == first + 8);
  CHECK(area.at(1).steps == first + 16);
}

TEST_CASE("terms that differ in any one or two bits have different signatures") {
  comm::terms sum;
  sum.kind = comm::collective::all_reduce;
  sum.in_code = sum.out_code = VELO_DTYPE_FLOAT;
  sum.in_bits = sum.out_bits = 32;
  sum.count = 1024;
  sum.scale = 1;
  for (const comm::terms& base : {comm::terms(), sum}) {
    std::int64_t same = 0;
    const auto flipped = [](comm::terms of, int bit) {
      unsigned char bytes[sizeof of];
      std::memcpy(bytes, &of, sizeof of);
      bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1 << bit % 8);
      std::memcpy(&of, bytes, sizeof of);
      return of;
    };
    for (int one = 0; one < 256; ++one) {
      const comm::terms odd = flipped(base, one);
      same += odd.signature() == base.signature();
      for (int other = 0; other < one; ++other)
        same += flipped(odd, other).signature() == base.signature();
    }
    CHECK(same == 0);
  }
}

TEST_CASE("sets of ranks are printed as ranges") {
  comm::rank_set set;
  CHECK(set.lowest() == -1);
  set.add(7);
  CHECK(set.text() == "rank 7");
  set.add(3);
  set.add(4);
  CHECK(set.text() == "ranks 3, 4, 7");
  set.add(5);
  set.add(1023);
  set.add(0);
  CHECK(set.text() == "ranks 0, 3-5, 7, 1023");
  CHECK(set.lowest() == 0);
}

TEST_CASE("a fault is there for every rank that noted one, however many note at once") {
  constexpr int ranks = 2, rounds = 5000;
  std::atomic<int> arrived{0}, unseen{0}, others{0};
  std::vector<std::unique_ptr<area_of>> areas;
  for (int round = 0; round < rounds; ++round)
    areas.push_back(std::make_unique<area_of>(ranks, 1000));
  std::atomic<std::uint64_t> first[rounds] = {};
  on_threads(ranks, [&](int rank) {
    for (int round = 0; round < rounds; ++round) {
      const comm::shared_area& area = areas[at(round)]->at(rank).area;
      comm::fault mine, known;
      mine.sequence = static_cast<std::uint64_t>(rank) + 1;
      synchronize(arrived, round, rank * (round % 100));
      area.record_fault(rank, mine);
      unseen += !area.read_fault(0, known);
      std::uint64_t none = 0;
      if (!first[round].compare_exchange_strong(none, known.sequence))
        others += none != known.sequence;
    }
  });
  CHECK(unseen == 0);
  CHECK(others == 0);
}

TEST_CASE("threads of one rank that note at once leave one fault, there for all of them") {
  constexpr int rounds = 5000;
  std::atomic<int> arrived{0}, unseen{0};
  std::vector<std::unique_ptr<area_of>> areas;
  for (int round = 0; round < rounds; ++round) areas.push_back(std::make_unique<area_of>(2, 1000));
  on_threads(2, [&](int i) {
    for (int round = 0; round < rounds; ++round) {
      const comm::shared_area& area = areas[at(round)]->at(1).area;
      comm::fault mine, known;
      mine.kind = comm::fault::how::aborted;
      synchronize(arrived, round, i * (round % 100));
      area.record_fault(1, mine);
      unseen += !area.read_fault(0, known) || known.kind != mine.kind;
    }
  });
  CHECK(unseen == 0);
}

TEST_CASE("a rank that dies while it notes a fault hides no other's") {
  area_of area(2, 1000);
  area.at(0).area.state(0).note.taken = 1;  // and never more
  comm::fault mine, known;
  mine.kind = comm::fault::how::ended;
  area.at(1).area.record_fault(1, mine);
  REQUIRE(area.at(1).area.read_fault(0, known));
  CHECK(known.kind == comm::fault::how::ended);
}
