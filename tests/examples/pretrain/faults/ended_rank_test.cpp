// A rank that ends in any collective of any group of a job of tp 2, pp 2 and cp 2: all others end,
// and each names that rank and a group in which one of its peers there missed it. Where it ends is
// counted, not timed: a library before velo's functions (ended_collective.cpp) numbers the calls of
// each rank, and ends a rank before one of them. VELO_PRETRAIN_LONG: before the first and the last
// call of each function in each group, of all ranks that make it; killed and stopped.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <tuple>

#include "tests/comm/lateness.hpp"
#include "tests/examples/pretrain/workplace.hpp"
#include "velo/status.h"

namespace {

constexpr int ranks = 8;

// All processes are gone within the deadline and 150 ms; a killed rank is missed without waiting
// for the deadline. Where eight ranks take turns on two busy cores each wake-up on the way comes
// late, as lateness.hpp measures: that of the rank that misses the ended one, those of its peers in
// three kinds of groups one after another, and those of six other processes that end meanwhile.
constexpr int deadline_s = 1;
constexpr double most_ms = 150;
constexpr int wake_ups = 10;

// The ranks of a job's groups differ in these bits of their numbers.
const std::map<std::string, int> groups = {
    {"job", 7}, {"tp", 1}, {"cp", 2}, {"dp-cp", 2}, {"pp", 4}};

bool are_peers(int one, int other, const std::string& group) {
  return ((one ^ other) & ~groups.at(group)) == 0;
}

struct call {
  std::string function, group;
  bool operator<(const call& other) const {
    return std::tie(function, group) < std::tie(other.function, other.group);
  }
};

// The call before which a rank ends.
struct place {
  int rank = 0, number = 0;  // 0: none
};

// All ranks of a job that end by themselves, as a launcher without a parent starts them.
class counted_job {
 public:
  counted_job(const place& ends, int signal) : ends_(ends), signal_(signal) {
    std::vector<std::string> words = {
        "--tp",           "2",
        "--pp",           "2",
        "--cp",           "2",
        "--steps",        "2",
        "--warmup",       "0",
        "--accumulation", "2",
        "--transport",    "shm",
        "--threads",      "1",
        "--timeout",      signal == SIGSTOP ? std::to_string(deadline_s) : "60"};
    const std::vector<std::string> all = tiny(w_.path, words);
    for (int rank = 0; rank < ranks; ++rank)
      started_.push_back(std::make_unique<child>(all, [&] { prepare(rank); }));
  }
  // The codes of the ranks; a rank that was stopped is killed once the others have ended, which
  // was at over_ns of the monotonic clock.
  std::vector<int> finish() {
    std::vector<int> codes(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      if (!is_victim(rank)) codes[rank] = started_[rank]->finish().code;
    over_ns = std::chrono::steady_clock::now().time_since_epoch().count();
    for (int rank = 0; rank < ranks; ++rank)
      if (is_victim(rank))
        started_[rank]->send(SIGKILL), codes[rank] = started_[rank]->finish().code;
    return codes;
  }
  std::string text(const char* kind, int rank) const {
    return get(w_ / (kind + std::to_string(rank)));
  }

  long long over_ns = 0;

 private:
  bool is_victim(int rank) const { return ends_.number > 0 && rank == ends_.rank; }
  void prepare(int rank) const {
    const std::map<const char*, std::string> all = {
        {"RANK", std::to_string(rank)},
        {"WORLD_SIZE", std::to_string(ranks)},
        {"TORCHELASTIC_RUN_ID", w_.path},
        {"LD_PRELOAD", ENDED_COLLECTIVE},
        {"VELO_END_FOLDER", w_.path},
        {"VELO_END_AT", ends_.number > 0 ? std::to_string(ends_.number) : ""},
        {"VELO_END_RANK", std::to_string(ends_.rank)},
        {"VELO_END_SIGNAL", std::to_string(signal_)}};
    for (const auto& [name, value] : all) ::setenv(name, value.c_str(), 1);
    ::alarm(60);
  }

  const place ends_;
  const int signal_;
  const workplace w_;
  std::vector<std::unique_ptr<child>> started_;
};

// Every function in every group that a job calls, and where: by rank and number.
std::map<call, std::vector<place>> calls_of_a_job() {
  counted_job job({}, 0);
  for (const int code : job.finish()) REQUIRE(code == 0);
  std::map<call, std::vector<place>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    std::istringstream lines(job.text("calls.", rank));
    int number = 0;
    for (call one; lines >> number >> one.function >> one.group;)
      all[one].push_back({rank, number});
  }
  return all;
}

// Whether peers miss a rank in this call itself, not in one that follows: nobody waits for one that
// receives, that has a slice ready, or whose gradient of an embedding is its own.
bool is_missed_at_once(const call& one) {
  const std::set<std::string> alone = {"receive", "borrow", "finish", "velo_buckets_ready",
                                       "velo_vocab_parallel_embedding_backward"};
  return alone.count(one.function) == 0;
}

// The group that a record names: "(operation 9) in tp within 1000 ms: rank 3 not there"; empty: the
// record names none.
std::string group_in(const std::string& text) {
  const std::regex named(" in ([a-z-]+)( within [0-9]+ ms)?: rank [0-9]+ ");
  std::smatch found;
  return std::regex_search(text, found, named) ? found[1].str() : "";
}

struct record {
  long long at = 0;
  int code = 0, rank = -1;
  std::string text;
};

record record_in(const std::string& text) {
  record found;
  std::istringstream from(text);
  from >> found.at >> found.code >> found.rank;
  std::getline(from, found.text);
  return found;
}

// What a record says, without the function in which its rank learned it.
std::string fault_in(const record& missed) {
  return missed.text.substr(missed.text.find(": "));
}

// Each of these records names a group of which the ended rank is a member, and in which a peer of
// its own there says the same.
void check_groups(const std::map<int, record>& all, int ended) {
  for (const auto& [rank, missed] : all) {
    INFO("rank " << rank << ": " << missed.text);
    const std::string group = group_in(missed.text);
    REQUIRE(groups.count(group) == 1);
    CHECK(std::any_of(all.begin(), all.end(), [&, &one = missed](const auto& each) {
      return are_peers(each.first, ended, group) && fault_in(each.second) == fault_in(one);
    }));
  }
}

void check_end(const call& of, const place& at, int signal) {
  INFO(of.function << " in " << of.group << ", call " << at.number << " of rank " << at.rank
                   << ", signal " << signal);
  const velo::testing::lateness late_by;
  counted_job job(at, signal);
  const std::vector<int> codes = job.finish();
  const record ended = record_in(job.text("ended.", at.rank));
  REQUIRE(ended.at > 0);
  std::map<int, record> all;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == at.rank) continue;
    const record missed = record_in(job.text("missed.", rank));
    INFO("rank " << rank << ": " << missed.text);
    CHECK(codes[static_cast<std::size_t>(rank)] == 1);
    CHECK(missed.code == VELO_ERR_PEER);
    CHECK(missed.rank == at.rank);
    all[rank] = missed;
  }
  const double took = static_cast<double>(job.over_ns - ended.at) / 1e6;
  CHECK(took < (signal == SIGSTOP ? deadline_s * 1000 : 0) + most_ms + late_by.of_ms(wake_ups));
  check_groups(all, at.rank);
  if (is_missed_at_once(of))
    CHECK(std::any_of(all.begin(), all.end(),
                      [&](const auto& each) { return group_in(each.second.text) == of.group; }));
}

}  // namespace

TEST_CASE("a rank that ends in any collective of any group is named by all, with the group") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const std::map<call, std::vector<place>> all = calls_of_a_job();
  CHECK(all.size() > 15);
  for (const auto& [group, bits] : groups)
    CHECK(std::any_of(all.begin(), all.end(),
                      [&, &group = group](const auto& each) { return each.first.group == group; }));
  std::size_t turn = 0;
  for (const auto& [of, places] : all) {
    if (!is_long && ++turn % 6 != 1) continue;
    check_end(of, places[places.size() / 2], SIGKILL);
    if (!is_long) continue;
    for (const int signal : {SIGKILL, SIGSTOP})
      for (const place& at : {places.front(), places.back()}) check_end(of, at, signal);
  }
  const auto& [of, places] = *all.rbegin();
  check_end(of, places.front(), SIGSTOP);
}
