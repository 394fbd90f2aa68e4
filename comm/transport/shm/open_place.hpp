// Where rank 0 listens for the ranks of a group: a socket with the group's name, in the rendezvous
// folder.
//
// A locked file beside the socket claims the name: what an earlier rank 0 left when it was killed
// is taken away by the next, whatever its name, which the lock tells from one that lives. Both
// files are gone when the place ends. Not hot.
#pragma once

#include <string>

#include "comm/transport/shm/packet.hpp"

namespace velo::comm {

// What the system refused at a rendezvous. Throws IO.
[[noreturn]] void fail_io(const char* expected, int error);

class open_place {
 public:
  explicit open_place(const std::string& name);  // throws IO, and STATE for a name that is claimed
  ~open_place();
  open_place(const open_place&) = delete;
  open_place& operator=(const open_place&) = delete;

  int listening() const { return listening_.get(); }

 private:
  class claim {
   public:
    claim(const std::string& folder, const std::string& name);
    ~claim();
    claim(const claim&) = delete;
    claim& operator=(const claim&) = delete;

   private:
    const std::string file_;
    descriptor lock_;
  };
  open_place(const std::string& folder, const std::string& name);

  const claim claim_;
  const std::string socket_;
  descriptor listening_;
};

}  // namespace velo::comm
