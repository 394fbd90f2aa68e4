// The program as mpirun starts it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

// Words before the program's: a shell that lets each rank pretend to be of a host, a letter of
// `hosts`.
inline std::vector<std::string> on_hosts(const std::string& hosts) {
  return {"sh", "-c",
          "hosts=" + hosts +
              " rank=$((OMPI_COMM_WORLD_RANK + 1))\n"
              "export VELO_MPI_HOST=$(echo $hosts | cut -c$rank)\n"
              "export OMPI_COMM_WORLD_LOCAL_SIZE=1\n"
              "exec \"$0\" \"$@\""};
}

// The calling process becomes mpirun, which starts the program; `before`: words in front of the
// program's.
inline void become_mpirun(int ranks, std::vector<std::string> words,
                          const std::vector<std::string>& before = {}) {
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  std::vector<std::string> all = {"mpirun", "--oversubscribe", "-n", std::to_string(ranks)};
  all.insert(all.end(), before.begin(), before.end());
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
