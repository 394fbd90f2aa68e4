// Meetings by themselves: steps that stand still, and the words of a set of ranks.
#include "comm/transport/shared/meeting.hpp"

#include <sys/mman.h>

#include "comm/ranks.hpp"
#include "comm/transport/shared/shared_relay.hpp"
#include "core/fails.hpp"
#include "core/stream/stream.hpp"

using namespace velo::testing;
namespace comm = velo::comm;
namespace core = velo::core;

namespace {

// Ranks over one area, each a place and a context.
class area_of {
 public:
  explicit area_of(int ranks, std::int64_t timeout_ms) {
    const std::size_t slot = comm::shared_area::least_slot(ranks);
    const std::size_t bytes = comm::shared_area::bytes_for(ranks, slot);
    memory_.reset(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                  [bytes](void* p) { munmap(p, bytes); });
    const comm::shared_area area(memory_.get(), ranks, slot, core::sleepers::of_process);
    for (int rank = 0; rank < ranks; ++rank)
      places_.push_back({area, rank, timeout_ms * 1000000, 0, nullptr,
                         std::vector<const void*>(static_cast<std::size_t>(ranks)), 0, 0});
  }
  comm::place& at(int rank) { return places_[static_cast<std::size_t>(rank)]; }

 private:
  std::shared_ptr<void> memory_;
  std::vector<comm::place> places_;
};

// body(meeting) as work that waits; the failure it ended with.
template <class Body>
core::failure met(comm::place& at, Body&& body) {
  velo_context_desc one = VELO_CONTEXT_DESC_INIT;
  one.threads = 1;
  velo_context context = nullptr;
  core::failure ended;
  if (velo_context_create(&one, &context) != VELO_OK) return ended;
  core::context& owner = core::resolve<core::context>(context, "context");
  owner.inline_stream().run_waiting([&](core::execution& state) {
    comm::operation what;
    what.terms.kind = comm::collective::all_reduce;
    comm::meeting m(at, what, state);
    try {
      body(m);
    } catch (const core::failure& f) {
      ended = f;
    }
  });
  velo_context_destroy(context);
  return ended;
}

// Two threads meet at a round's begin and go on within nanoseconds, one of them `apart` looks
// later.
void meet(std::atomic<int>& arrived, int round, int apart) {
  ++arrived;
  for (int looks = 0; arrived < 2 * (round + 1); ++looks)
    if (looks > 2000) std::this_thread::yield();
  for (int looks = 0; looks < apart; ++looks) static_cast<void>(arrived.load());
}

}  // namespace

TEST_CASE("a rank that stops in the middle of a collective is the one that is named") {
  area_of area(3, 150);
  core::failure ended[3];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      ended[rank] = met(area.at(rank), [rank](comm::meeting& m) {
        m.steps(
            {10, 0}, [](std::int64_t) {},
            [&](std::int64_t step) {
              if (rank == 1 && step == 2) velo::core::fail(VELO_ERR_IO, "", "to go on", "a stop");
            });
      });
    });
  for (std::thread& one : threads) one.join();
  CHECK(ended[1].code == VELO_ERR_IO);
  for (const int rank : {0, 2}) {
    CHECK(ended[rank].code == VELO_ERR_PEER);
    CHECK(ended[rank].rank == 1);
    CHECK(std::string(ended[rank].got) == "rank 1 not there");
  }
}

// Looked at by who waits, between its look at the awaited word and at the deadline.
class at_each_look final : public comm::peer_watch {
 public:
  explicit at_each_look(std::function<void()> act) : act_(std::move(act)) {}
  bool find_gone(comm::rank_set&, char (&)[128]) noexcept override {
    act_();
    return false;
  }

 private:
  const std::function<void()> act_;
};

TEST_CASE("who comes just before the deadline is not late, and nobody else is named") {
  area_of area(3, 5);
  const auto come = [&](int rank) {
    return met(area.at(rank), [](comm::meeting& m) { m.arrive(); }).code;
  };
  CHECK(come(2) == VELO_OK);
  const auto begin = std::chrono::steady_clock::now();
  bool has_come = false;
  at_each_look comes_late([&] {
    const std::chrono::milliseconds deadline{5};
    if (std::chrono::steady_clock::now() - begin < deadline)
      std::this_thread::sleep_for(deadline);  // the next look is one beyond it
    else if (!std::exchange(has_come, true))
      come(1);
  });
  area.at(0).watch = &comes_late;
  const core::failure ended = met(area.at(0), [](comm::meeting& m) {
    m.arrive();
    m.meet();
  });
  CHECK(has_come);
  INFO(ended.got);
  CHECK(ended.code == VELO_OK);
}

TEST_CASE(
    "a rank that stops in the middle of a relay is named, and none of those that wait for it") {
  enum class stop { before_reading, before_the_end };
  for (const stop at : {stop::before_reading, stop::before_the_end}) {
    area_of area(3, 100);
    core::failure ended[3];
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ended[rank] = met(area.at(rank), [&](comm::meeting& m) {
          --area.at(rank).met;  // the relay's in the place of this meeting
          {
            comm::shared_relay pieces(area.at(rank), m.what, m.state, true);
            pieces.await_place();
            pieces.show();
            pieces.await_piece();
            if (rank == 1 && at == stop::before_reading) return;
            pieces.release();
            if (at == stop::before_reading) pieces.await_readers();
            if (rank == 1) return;
            pieces.finish();
          }
          comm::meeting next(area.at(rank), m.what, m.state);
          next.steps(
              {2, 0}, [](std::int64_t) {}, [](std::int64_t) {});
        });
      });
    for (std::thread& one : threads) one.join();
    CHECK(ended[1].code == VELO_OK);
    for (const int rank : {0, 2}) {
      CHECK(ended[rank].code == VELO_ERR_PEER);
      CHECK(std::string(ended[rank].got) == "rank 1 not there");
    }
  }
}

TEST_CASE("what is staged in a slot stays until all have read it, whatever of a slot is used") {
  constexpr int steps = 700;
  const int ranks = GENERATE(2, 4);
  const std::int64_t slot = static_cast<std::int64_t>(comm::shared_area::least_slot(ranks));
  const std::int64_t span = std::min(slot, GENERATE(as<std::int64_t>(), 8, 4096, 4224, 1 << 20));
  area_of area(ranks, 20000);
  comm::nearness near;
  for (int look = 0; look < comm::nearness::looks_to_change; ++look) near.took(0);
  for (int rank = 1; rank < ranks; rank += 2)  // every second one moves on in its places
    area.at(rank).writer = comm::peer_writer(near);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const core::failure ended = met(area.at(rank), [&](comm::meeting& m) {
        m.steps(
            {steps, span},
            [&](std::int64_t step) {
              const std::int64_t mine = step * ranks + rank;
              for (const std::int64_t at : {std::int64_t{0}, span - 8})
                std::memcpy(m.mine() + at, &mine, sizeof mine);
            },
            [&](std::int64_t step) {
              if (step % 97 == rank) std::this_thread::sleep_for(std::chrono::microseconds(50));
              for (int peer = 0; peer < ranks; ++peer)
                for (const std::int64_t at : {std::int64_t{0}, span - 8}) {
                  std::int64_t theirs = 0;
                  std::memcpy(&theirs, m.of(peer) + at, sizeof theirs);
                  wrong += theirs != step * ranks + peer;
                }
            });
      });
      wrong += ended.code != VELO_OK;
    });
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
}

TEST_CASE("ranks look how far they are from each other where they stage a page or more") {
  const bool looks = GENERATE(true, false);
  const std::int64_t span = comm::peer_writer::judged_from - (looks ? 0 : 1);
  area_of area(2, 20000);
  bool ended_well[2] = {}, looked[2] = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto nothing = [](std::int64_t) {};
      const auto stage = [&](comm::meeting& m) { m.steps({1, span}, nothing, nothing); };
      bool well = true;
      for (int round = 0; round < 64; ++round) {
        well = met(area.at(rank), stage).code == VELO_OK && well;
        looked[rank] = looked[rank] || !area.at(rank).writer.peers().wants_look();
      }
      ended_well[rank] = well;
    });
  for (std::thread& one : threads) one.join();
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(ended_well[rank]);
    CHECK(looked[rank] == looks);
  }
}

TEST_CASE(
    "what is used of a slot moves on with every second step, through all of its slot and not "
    "beyond it") {
  const std::size_t slot = std::size_t{64} << 10;
  for (const int ranks : {2, 3, 4, 8}) {
    const std::size_t bytes = comm::shared_area::needed_for(ranks, slot);
    std::vector<char> memory(bytes);
    const comm::shared_area area(memory.data(), ranks, slot, core::sleepers::of_process);
    for (const std::size_t span : {std::size_t{4096}, std::size_t{5120}, slot}) {
      const char* const first = area.slot(ranks - 1, 0, area.moved_by(0, span));
      const char* next = first;
      for (std::uint64_t step = 0; step < 200; ++step) {
        const char* const at = area.slot(ranks - 1, step, area.moved_by(step, span));
        REQUIRE(at + span <= memory.data() + bytes);
        if (step % 2 == 0 && at != first) REQUIRE(at == next);
        if (step % 2 == 0) next = at + span;
      }
      CHECK((area.moved_by(2, span) != 0) == (span < slot));
    }
    CHECK(area.moved_by(2, 2048) == 0);
  }
}

TEST_CASE("counters go past 32 bits, and who sleeps on them wakes") {
  area_of area(2, 60000);
  constexpr std::uint64_t first = (std::uint64_t{1} << 32) - 4;
  for (int rank = 0; rank < 2; ++rank) {
    area.at(rank).met = area.at(rank).steps = first;
    area.at(rank).area.state(rank).steps = first;
  }
  core::failure ended[2];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < 8 && ended[rank].code == VELO_OK; ++round)
        ended[rank] = met(area.at(rank), [&](comm::meeting& m) {
          if (round % 2 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(3));
          m.steps(
              {2, 0}, [](std::int64_t) {}, [](std::int64_t) {});
        });
    });
  for (std::thread& one : threads) one.join();
  for (const core::failure& one : ended) CHECK(one.code == VELO_OK);
  CHECK(area.at(0).met == first + 8);
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

TEST_CASE("sets of ranks are told as ranges") {
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
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < rounds; ++round) {
        const comm::shared_area& area = areas[static_cast<std::size_t>(round)]->at(rank).area;
        comm::fault mine, known;
        mine.sequence = static_cast<std::uint64_t>(rank) + 1;
        meet(arrived, round, rank * (round % 100));
        area.note(rank, mine);
        unseen += !area.noted(0, known);
        std::uint64_t none = 0;
        if (!first[round].compare_exchange_strong(none, known.sequence))
          others += none != known.sequence;
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(unseen == 0);
  CHECK(others == 0);
}

TEST_CASE("threads of one rank that note at once leave one fault, there for all of them") {
  constexpr int rounds = 5000;
  std::atomic<int> arrived{0}, unseen{0};
  std::vector<std::unique_ptr<area_of>> areas;
  for (int round = 0; round < rounds; ++round) areas.push_back(std::make_unique<area_of>(2, 1000));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < rounds; ++round) {
        const comm::shared_area& area = areas[static_cast<std::size_t>(round)]->at(1).area;
        comm::fault mine, known;
        mine.kind = comm::fault::how::aborted;
        meet(arrived, round, i * (round % 100));
        area.note(1, mine);
        unseen += !area.noted(0, known) || known.kind != mine.kind;
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(unseen == 0);
}

TEST_CASE("a rank that dies while it notes a fault hides no other's") {
  area_of area(2, 1000);
  area.at(0).area.state(0).note.taken = 1;  // and never more
  comm::fault mine, known;
  mine.kind = comm::fault::how::ended;
  area.at(1).area.note(1, mine);
  REQUIRE(area.at(1).area.noted(0, known));
  CHECK(known.kind == comm::fault::how::ended);
}
