// The socket at which rank 0 listens for the ranks of a group. It has the group's name and lies in
// the rendezvous folder.
//
// A locked file beside the socket reserves the name. The next rank 0 of any group removes the files
// of killed ones, which it recognizes by their free locks. Both files are removed with this object.
// Not hot.
#pragma once

#include <string>

#include "comm/transport/packet.hpp"

namespace velo::comm {

// Throws IO for a system call of the rendezvous that failed.
[[noreturn]] void fail_io(const char* expected, int error);

class rendezvous_socket {
 public:
  explicit rendezvous_socket(const std::string& name);  // throws IO, STATE: the name is taken
  ~rendezvous_socket();
  rendezvous_socket(const rendezvous_socket&) = delete;
  rendezvous_socket& operator=(const rendezvous_socket&) = delete;

  int listening() const { return listening_.get(); }

 private:
  class name_lock {
   public:
    name_lock(const std::string& folder, const std::string& name);
    ~name_lock();
    name_lock(const name_lock&) = delete;
    name_lock& operator=(const name_lock&) = delete;

   private:
    const std::string file_;
    descriptor lock_;
  };
  rendezvous_socket(const std::string& folder, const std::string& name);

  const name_lock name_lock_;
  const std::string socket_;
  descriptor listening_;
};

}  // namespace velo::comm
