// A rank that ends in any collective of any group of a job of tp 2, pp 2 and cp 2: all others end,
// and each names that rank and a group in which it was missed. Where it ends is counted, not timed:
// a library before velo's functions (ended_collective.cpp) numbers the calls of each rank, and ends
// a rank before one of them. VELO_PRETRAIN_LONG: before the first and the last call of each
// function in each group, of all ranks that make it; killed and stopped.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <tuple>

#include "tests/examples/pretrain/workplace.hpp"
#include "velo/status.h"

namespace {

constexpr int ranks = 8;
const std::set<std::string> groups = {"group", "tp", "cp", "pp", "dp-cp"};

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
        "--tp",        "2",   "--pp",      "2", "--cp",           "2",
        "--steps",     "2",   "--warmup",  "0", "--accumulation", "2",
        "--transport", "shm", "--threads", "1", "--timeout",      signal == SIGSTOP ? "1" : "60"};
    const std::vector<std::string> all = tiny(w_.path, words);
    for (int rank = 0; rank < ranks; ++rank)
      started_.push_back(std::make_unique<child>(all, [&] { prepare(rank); }));
  }
  // The codes of the ranks; a rank that was stopped is killed once the others have ended.
  std::vector<int> finish() {
    std::vector<int> codes(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      if (!is_victim(rank)) codes[rank] = started_[rank]->finish().code;
    for (int rank = 0; rank < ranks; ++rank)
      if (is_victim(rank))
        started_[rank]->send(SIGKILL), codes[rank] = started_[rank]->finish().code;
    return codes;
  }
  std::string text(const char* kind, int rank) const {
    return get(w_ / (kind + std::to_string(rank)));
  }

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

// The group that a record names: "(operation 9) in tp within 1000 ms: rank 3 not there"; "group":
// the whole job, which is no part.
std::string group_in(const std::string& text) {
  const std::regex named(" in ([a-z-]+)( within [0-9]+ ms)?: rank [0-9]+ ");
  std::smatch found;
  return std::regex_search(text, found, named) ? found[1].str() : "group";
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

void check_end(const call& of, const place& at, int signal) {
  INFO(of.function << " in " << of.group << ", call " << at.number << " of rank " << at.rank
                   << ", signal " << signal);
  counted_job job(at, signal);
  const std::vector<int> codes = job.finish();
  const record ended = record_in(job.text("ended.", at.rank));
  REQUIRE(ended.at > 0);
  bool names_group = false;
  std::string texts;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == at.rank) continue;
    const record missed = record_in(job.text("missed.", rank));
    INFO("rank " << rank << ": " << missed.text);
    CHECK(codes[static_cast<std::size_t>(rank)] == 1);
    CHECK(missed.code == VELO_ERR_PEER);
    CHECK(missed.rank == at.rank);
    const double ms = static_cast<double>(missed.at - ended.at) / 1e6;
    CHECK(ms < (signal == SIGSTOP ? 1000 : 0) + 5000);  // of a busy machine, and a deadline of 60 s
    const std::string group = group_in(missed.text);
    CHECK(groups.count(group) == 1);
    names_group = names_group || group == of.group;
    texts += missed.text + '\n';
  }
  INFO(texts);
  if (is_missed_at_once(of)) CHECK(names_group);
}

}  // namespace

TEST_CASE("a rank that ends in any collective of any group is named by all, with the group") {
  const bool is_long = std::getenv("VELO_PRETRAIN_LONG") != nullptr;
  const std::map<call, std::vector<place>> all = calls_of_a_job();
  CHECK(all.size() > 15);
  for (const std::string& group : groups)
    CHECK(std::any_of(all.begin(), all.end(),
                      [&](const auto& each) { return each.first.group == group; }));
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
