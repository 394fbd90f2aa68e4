// Jobs of ranks that share a model, one after another, some of which fail: threads, files and
// memory are given back. VELO_PRETRAIN_LONG: 1,000 jobs; else 30.
#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "examples/decoder/ranks/launch.hpp"
#include "tests/examples/decoder/trained.hpp"

namespace {

std::ptrdiff_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return std::distance(begin(all), end(all));
}

double resident_bytes() {
  ::malloc_trim(0);
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  REQUIRE(file != nullptr);
  const int read = std::fscanf(file, "%*s %ld", &pages);
  std::fclose(file);
  REQUIRE(read == 1);
  return static_cast<double>(pages) * 4096;
}

// Two steps of tp 2 x pp 2 x cp 2 on documents; `failing`: a rank that throws after the first.
void run_job(const decoder::corpus& text, int failing) {
  decoder::settings s = small_settings("f32");
  s.model.layers = 2, s.model.hidden = 32, s.model.heads = 4, s.model.kv_heads = 2;
  s.model.inner = 32, s.data.sequence = 32, s.data.batch = 1, s.data.accumulation = 2;
  s.data.documents = "lines";
  s.parallel.tp = s.parallel.pp = s.parallel.cp = 2, s.parallel.sequence_parallel = true;
  s.run.threads = 1, s.run.transport = "local";
  s.schedule.steps = 2;
  decoder::on_all_ranks(s, {}, [&](decoder::member& rank) {
    split(rank, s);
    decoder::trainer one(rank, s, text);
    one.start();
    one.step();
    if (rank.rank() == failing) throw std::runtime_error("a rank fails");
    one.step();
    return 0;
  });
}

}  // namespace

TEST_CASE("jobs that end or fail leave no thread, file or memory behind") {
  const int cycles = std::getenv("VELO_PRETRAIN_LONG") != nullptr ? 1000 : 30;
  const std::string whole = some_text(20000);
  const decoder::corpus text =
      decoder::split_documents(whole, decoder::line_ends(whole, {whole.size()}), 1 << 20);
  double resident = 0;
  std::ptrdiff_t threads = 0, files = 0;
  for (int i = 0; i < cycles; ++i) {
    if (i == cycles / 3) {  // pools, slabs and the heap have their size by now
      resident = resident_bytes();
      threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");
    }
    const int failing = i % 3 == 2 ? i / 3 % 8 : -1;
    if (failing < 0)
      run_job(text, failing);
    else
      CHECK_THROWS_WITH(run_job(text, failing), "a rank fails");
  }
  CHECK(entries_of("/proc/self/task") == threads);
  CHECK(entries_of("/proc/self/fd") == files);
  CHECK(resident_bytes() - resident < 4e6);
}
