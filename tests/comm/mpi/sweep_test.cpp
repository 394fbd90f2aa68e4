// Over MPI: every collective of every dtype and reduction against plain loops in the order of the
// group, bit for bit. VELO_SWEEP: of sizes up to 2^20; VELO_SWEEP_HOSTS: a letter for the host that
// each rank pretends to be of, over and over.
#include "comm/collective/sweep.hpp"

#include "comm/mpi/ranks.hpp"

using namespace velo::testing;

TEST_CASE("every collective, dtype and reduction is what plain loops give", "[sweep]") {
  const char* given = std::getenv("VELO_SWEEP_HOSTS");
  const std::string hosts = given != nullptr ? given : "0";
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  setenv("VELO_MPI_HOST", std::string(1, sweep::host_of(rank, hosts)).c_str(), 1);
  joined all(over_mpi(60000));
  all.me.plans = all.me.rank % 2 == 1;
  sweep of(all.me, hosts);
  of.run();
  INFO("rank " << all.me.rank << " of " << all.me.size << ": " << of.first());
  CHECK(of.wrong() == 0);
}
