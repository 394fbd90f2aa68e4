// Requests to bench_gloo.py, and a folder in which its processes meet.
#include "bench/comm/gloo.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace velo::bench {
namespace {

bool on_all_ranks(bool here) {
  int all = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

}  // namespace

gloo::gloo(const std::string& python, const std::string& script) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string found = find_python(python, script);
  if (!on_all_ranks(!found.empty())) return;
  char folder[] = "/tmp/bench_gloo_XXXXXX";
  if (rank == 0 && mkdtemp(folder) == nullptr) folder[0] = 0;
  MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (folder[0] == 0) return;
  folder_ = folder;
  process_ = std::make_unique<answerer>(std::vector<std::string>{
      found, script, folder_ + "/store", std::to_string(rank), std::to_string(size)});
  if (on_all_ranks(process_->hear() == "ready\n")) return;
  process_ = nullptr;
  if (rank == 0)
    std::fprintf(stderr, "bench_comm: without Gloo: %s cannot run %s\n", found.c_str(),
                 script.c_str());
}

gloo::~gloo() {
  process_ = nullptr;
  MPI_Barrier(MPI_COMM_WORLD);
  if (folder_.empty()) return;
  unlink((folder_ + "/store").c_str());
  rmdir(folder_.c_str());
}

bool gloo::take(const std::string& row) {
  return process_ != nullptr && on_all_ranks(ask("row " + row) == "ok\n");
}

double gloo::call(int round) {
  return std::atof(ask("call " + std::to_string(round)).c_str());
}

std::string gloo::ask(const std::string& line) {
  process_->say(line);
  return process_->hear();
}

}  // namespace velo::bench
