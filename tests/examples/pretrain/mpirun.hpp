// The program as mpirun starts it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

// In the child: the program becomes mpirun, which starts it. hosts: a letter for the host that each rank
// pretends to be of; empty: all are of this one.
inline void become_mpirun(int ranks, std::vector<std::string> words,
                          const std::string& hosts = "") {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  std::vector<std::string> all = {"mpirun", "--oversubscribe", "-n", std::to_string(ranks)};
  if (!hosts.empty())
    all.insert(all.end(), {"sh", "-c",
                           "hosts=" + hosts +
                               " rank=$((OMPI_COMM_WORLD_RANK + 1))\n"
                               "export VELO_MPI_HOST=$(echo $hosts | cut -c$rank)\n"
                               "export OMPI_COMM_WORLD_LOCAL_SIZE=1\n"
                               "exec \"$0\" \"$@\""});
  all.push_back(PRETRAIN_PROGRAM);
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

inline bool has_mpirun() {
  return std::system("command -v mpirun >/dev/null") == 0;
}
