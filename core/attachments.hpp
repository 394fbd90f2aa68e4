// Objects that the layers above core keep in a context: one of each type, made on first use.
//
// Core knows none of these types. The objects live as long as the context and are destroyed after
// everything that has a handle. Thread-safe. Cost: a lock and a walk over a short list.
#pragma once

#include <memory>
#include <mutex>

namespace velo::core {

class attachments {
 public:
  template <class T>
  T& get() {
    static constexpr char key = 0;  // its address identifies the type
    const std::lock_guard<std::mutex> lock(lock_);
    for (node* at = first_.get(); at != nullptr; at = at->next.get())
      if (at->key == &key) return static_cast<holder<T>*>(at)->object;
    auto made = std::make_unique<holder<T>>();
    T& object = made->object;
    made->key = &key;
    made->next = std::move(first_);
    first_ = std::move(made);
    return object;
  }

 private:
  struct node {
    virtual ~node() = default;
    const void* key = nullptr;
    std::unique_ptr<node> next;
  };
  template <class T>
  struct holder final : node {
    T object;
  };

  std::mutex lock_;
  std::unique_ptr<node> first_;
};

}  // namespace velo::core
