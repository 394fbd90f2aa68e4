// A rank that ends in any collective of any group of a job of tp 2, pp 2 and cp 2, or of tp 2, pp 2
// and ep 2 with experts that drop choices: all others end, and each names that rank and a group in
// which one of its peers there missed it. Where it ends is counted, not timed: a library before
// velo's functions (ended_collective.cpp) numbers the calls of each rank, and ends a rank before
// one of them. VELO_PRETRAIN_LONG: before the first and the last call of each function in each
// group, of all ranks that make it; killed and stopped.
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

// A job of eight ranks. groups: the ranks of a group differ in these bits of their numbers.
struct job_kind {
  std::vector<std::string> words;
  std::map<std::string, int> groups;

  bool are_peers(int one, int other, const std::string& group) const {
    return ((one ^ other) & ~groups.at(group)) == 0;
  }
};

const job_kind dense = {{"--tp", "2", "--pp", "2", "--cp", "2"},
                        {{"job", 7}, {"tp", 1}, {"cp", 2}, {"dp-cp", 2}, {"pp", 4}}};
const job_kind with_experts = {
    {"--tp", "2", "--pp", "2", "--ep", "2", "--experts", "4", "--expert_inner", "24",
     "--capacity_factor", "0.9", "--sequence_parallel", "true"},
    {{"job", 7}, {"tp", 1}, {"ep", 1}, {"edp", 2}, {"dp-cp", 2}, {"tp-dp-cp", 3}, {"pp", 4}}};

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
  counted_job(const job_kind& kind, const place& ends, int signal) : ends_(ends), signal_(signal) {
    std::vector<std::string> words = kind.words;
    words.insert(words.end(), {"--steps", "2", "--warmup", "0", "--accumulation", "2",
                               "--transport", "shm", "--threads", "1", "--timeout",
                               signal == SIGSTOP ? std::to_string(deadline_s) : "60"});
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
std::map<call, std::vector<place>> calls_of(const job_kind& kind) {
  counted_job job(kind, {}, 0);
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
void check_groups(const job_kind& kind, const std::map<int, record>& all, int ended) {
  for (const auto& [rank, missed] : all) {
    INFO("rank " << rank << ": " << missed.text);
    const std::string group = group_in(missed.text);
    REQUIRE(kind.groups.count(group) == 1);
    CHECK(std::any_of(all.begin(), all.end(), [&, &one = missed](const auto& each) {
      return kind.are_peers(each.first, ended, group) && fault_in(each.second) == fault_in(one);
    }));
  }
}

void check_end(const job_kind& kind, const call& of, const place& at, int signal) {
  INFO(of.function << " in " << of.group << ", call " << at.number << " of rank " << at.rank
                   << ", signal " << signal);
  const velo::testing::lateness late_by;
  counted_job job(kind, at, signal);
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
  check_groups(kind, all, at.rank);
  if (is_missed_at_once(of))
    CHECK(std::any_of(all.begin(), all.end(),
                      [&](const auto& each) { return group_in(each.second.text) == of.group; }));
}

// Before some calls, or with VELO_PRETRAIN_LONG before the first and the last of each function and
// group that `takes` is true for.
template <class Takes>
void check_ends(const job_kind& kind, const std::map<call, std::vector<place>>& all,
                std::size_t every, const Takes& takes) {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  std::size_t turn = 0;
  for (const auto& [of, places] : all) {
    if (!takes(of) || (!is_long && ++turn % every != 1 % every)) continue;
    check_end(kind, of, places[places.size() / 2], SIGKILL);
    if (!is_long) continue;
    for (const int signal : {SIGKILL, SIGSTOP})
      for (const place& at : {places.front(), places.back()}) check_end(kind, of, at, signal);
  }
}

bool moves_rows(const call& of) {
  return of.function.rfind("velo_dispatcher_", 0) == 0 || of.function == "velo_routing_set";
}

}  // namespace

TEST_CASE("a rank that ends in any collective of any group is named by all, with the group") {
  const std::map<call, std::vector<place>> all = calls_of(dense);
  CHECK(all.size() > 15);
  for (const auto& [group, bits] : dense.groups)
    CHECK(std::any_of(all.begin(), all.end(),
                      [&, &group = group](const auto& each) { return each.first.group == group; }));
  check_ends(dense, all, 6, [](const call&) { return true; });
  const auto& [of, places] = *all.rbegin();
  check_end(dense, of, places.front(), SIGSTOP);
}

TEST_CASE("a rank that ends in a dispatch, a combine or a gradient of these is named by all") {
  const std::map<call, std::vector<place>> all = calls_of(with_experts);
  CHECK(std::count_if(all.begin(), all.end(), [](const auto& each) {
          return moves_rows(each.first);
        }) == 6);  // in training choices are set in another group than in validation
  check_ends(with_experts, all, 2, moves_rows);
  for (const auto& [of, places] : all)
    if (of.function == "velo_dispatcher_combine")
      check_end(with_experts, of, places.back(), SIGSTOP);
}
