// Over MPI: every collective of every dtype and reduction against sums in double. VELO_SWEEP: of sizes up
// to 2^20; VELO_SWEEP_HOSTS: of ranks that pretend to be of so many hosts.
#include "comm/sweep.hpp"

#include "comm/mpi/ranks.hpp"

using namespace velo::test;

TEST_CASE("every collective, dtype and reduction is what sums in double say", "[sweep]") {
  const char* hosts = std::getenv("VELO_SWEEP_HOSTS");
  if (hosts != nullptr) {
    const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
    setenv("VELO_MPI_HOST", std::to_string(rank % std::atoi(hosts)).c_str(), 1);
  }
  joined all(over_mpi(60000));
  all.me.plans = all.me.rank % 2 == 1;
  sweep of(all.me);
  of.run();
  INFO("rank " << all.me.rank << " of " << all.me.size << ": " << of.first());
  CHECK(of.wrong() == 0);
}
