// The plugin for MPI where it is not there, not velo's, or of another release: a clear status each.
// Tests of a working plugin need mpirun: tests/comm/mpi.
#include "comm/ranks.hpp"
#include "tests/context.hpp"
#include "tests/temporary_folder.hpp"

using namespace velo::testing;

namespace {

const std::string folders = VELO_TEST_MPI_PLUGINS;

call_record query(const std::string& path) {
  const live_context context((R"({"plugin_path": ")" + path + "\"}").c_str());
  velo_group_desc desc = group_desc();
  desc.transport = VELO_TRANSPORT_MPI;
  velo_group group = nullptr;
  const velo_status made = velo_group_create(context, &desc, &group);
  CHECK(velo_transport_query(context, VELO_TRANSPORT_MPI) == made);
  CHECK(group == nullptr);
  return last_record();
}

}  // namespace

TEST_CASE("a plugin that is not there is looked for where it may be") {
  const call_record answer = query("/nowhere::/usr/nothing");
  CHECK(answer.code == VELO_ERR_UNSUPPORTED);
  CHECK(answer.got.rfind("none in /nowhere:/usr/nothing:/", 0) == 0);  // and beside the library
}

TEST_CASE("a plugin of another release is named") {
  const call_record answer = query("/nowhere:" + folders + "/old");
  CHECK(answer.code == VELO_ERR_ABI);
  CHECK(answer.got == "velo 0.9.7");
  CHECK(answer.cause == folders + "/old/libvelo_mpi.so");
}

TEST_CASE("a library that is no plugin, and a file that is no library") {
  CHECK(query(folders + "/other").code == VELO_ERR_NOT_FOUND);
  const temporary_folder folder;
  const std::string file = folder.put("libvelo_mpi.so", "no library\n");
  const call_record answer = query(folder.path());
  CHECK(answer.code == VELO_ERR_IO);
  CHECK(answer.got == "\"" + file + "\"");
}

TEST_CASE("everything works that needs no plugin") {
  const live_context context;
  for (const velo_transport one :
       {VELO_TRANSPORT_AUTO, VELO_TRANSPORT_SELF, VELO_TRANSPORT_LOCAL, VELO_TRANSPORT_SHM})
    CHECK(velo_transport_query(context, one) == VELO_OK);
  CHECK_REFUSED(velo_transport_query(context, 99), VELO_ERR_ARGUMENT, "transport");
}
