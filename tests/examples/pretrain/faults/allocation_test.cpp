// Memory running out in a rank of a job that trains: whichever allocation fails, the run ends, with
// the result of an undisturbed run or with one line and a failure. Not under sanitizers, which
// stand in for malloc themselves.
#include <algorithm>
#include <chrono>
#include <random>

#include "tests/examples/pretrain/workplace.hpp"

namespace {

struct job {
  const char* transport;
  std::vector<std::string> layout;
  const char* rank;  // whose allocations fail; "": any of the one process
};

// A run in which the n-th allocation fails, or all from there on.
class failing_run {
 public:
  failing_run(const job& of, int n, bool later) : of_(of) {
    std::vector<std::string> words = of.layout;
    words.insert(words.end(),
                 {"--steps", "2", "--threads", "1", "--log", "log", "--transport", of.transport});
    words[words.size() - 3] = w_ / "log";
    const auto begun = std::chrono::steady_clock::now();
    done_ = w_.run(words, [&] {
      ::alarm(60);  // a run that hangs ends
      ::setenv("LD_PRELOAD", FAILING_MALLOC, 1);
      ::setenv("VELO_FAIL_AT", std::to_string(n).c_str(), 1);
      ::setenv("VELO_FAIL_RANK", of_.rank, 1);
      if (later) ::setenv("VELO_FAIL_LATER", "1", 1);
      ::setenv("VELO_FAIL_COUNT", (w_ / "count").c_str(), 1);
    });
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }

  const outcome& done() const { return done_; }
  double seconds() const { return seconds_; }
  int allocations() const { return std::atoi(get(w_ / "count").c_str()); }
  std::string losses() const { return w_.losses("log"); }
  // Lines of the program about a failure.
  std::size_t complaints() const { return count_of("pretrain: ", done_.text); }

 private:
  const job& of_;
  const workplace w_;
  outcome done_;
  double seconds_ = 0;
};

constexpr int never = 1 << 30;

// The first allocations, and some of all others.
std::vector<int> sample_of(int all, int count) {
  std::vector<int> some;
  for (int n = 1; n < all && static_cast<int>(some.size()) < count / 4; n *= 3) some.push_back(n);
  std::mt19937 draw(7);
  while (static_cast<int>(some.size()) < count)
    some.push_back(1 + static_cast<int>(draw() % static_cast<unsigned>(all)));
  std::sort(some.begin(), some.end());
  return some;
}

void check_job(const job& of, int count) {
  const failing_run good(of, never, false);
  INFO(good.done().text);
  REQUIRE(good.done().code == 0);
  REQUIRE(good.allocations() > 1000);
  int failures = 0;
  for (const int n : sample_of(good.allocations(), count))
    for (const bool later : {false, true}) {
      const failing_run one(of, n, later);
      INFO(of.transport << ", rank " << of.rank << ": allocation " << n << " of "
                        << good.allocations() << (later ? " and all later" : "") << ", "
                        << one.seconds() << " s: " << one.done().text);
      failures += one.done().code != 0;
      if (one.done().code == 0) {
        CHECK(one.losses() == good.losses());
      } else {
        CHECK(one.done().code == 1);
        CHECK(one.complaints() == 1);
      }
      CHECK(one.seconds() < 30);
    }
  CHECK(failures > count);
}

int sample_size() {
  return std::getenv("VELO_ALLOCATIONS") != nullptr ? 200 : 5;
}

}  // namespace

TEST_CASE("an allocation that fails in a job of threads ends it with one line") {
  check_job({"local", {"--ranks", "2", "--tp", "2"}, ""}, sample_size());
}

TEST_CASE("an allocation that fails in a job of processes ends it with one line") {
  check_job({"shm", {"--ranks", "2", "--tp", "2"}, "0"}, sample_size());
  check_job({"shm", {"--ranks", "2", "--cp", "2"}, "1"}, sample_size());
}
