// The operators one context has beside the library's own, by name.
//
// Core only keeps them; the layer above knows what they are. Several are added at once or not at
// all. A member that was removed lives on with those who found it before. Thread-safe. Cost: a lock
// and a search.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace velo::core {

class roster {
 public:
  class member {
   public:
    virtual ~member() = default;
    virtual const char* name() const noexcept = 0;
  };
  using members = std::vector<std::shared_ptr<member>>;

  void add(const members& added);  // throws VELO_ERR_ARGUMENT when a name is taken
  void remove(const member& gone) noexcept;
  std::shared_ptr<member> find(const char* name) const;  // nullptr when there is none
  members all() const;

 private:
  mutable std::mutex lock_;
  members members_;
};

}  // namespace velo::core
