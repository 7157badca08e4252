// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "feedline/foreign_images.h"

namespace feedline::decode {

// A function of a library, and the pointer that receives its address.
struct Symbol {
  const char* name;
  void** address;
};
// Opens the first of these files that exists and has all functions, and never closes it. Returns its name, or nullopt.
std::optional<std::string> open_library(std::span<const std::string> files, std::span<const Symbol> symbols);

// Returns the files to try: the one that the environment variable names, otherwise `names` and the packaged one.
std::vector<std::string> library_files(AudioLibrary library, const char* variable,
                                       std::initializer_list<const char*> names);

// A library that is opened when it is first needed, and stays open. A library that was not found is searched again by
// the next call, because it may have been installed or set_packaged() called since. Thread-safe.
template <typename Library>
class OpenOnce {
 public:
  template <typename Open>
  Result<const Library*> get(Open open) {
    if (const Library* const opened = opened_.load(std::memory_order_acquire)) return opened;
    const std::lock_guard lock(mutex_);
    if (const Library* const opened = opened_.load(std::memory_order_acquire)) return opened;
    FEEDLINE_TRY(Library library, open());
    library_ = std::make_unique<const Library>(std::move(library));
    opened_.store(library_.get(), std::memory_order_release);
    return library_.get();
  }

 private:
  ForkMutex mutex_;
  std::unique_ptr<const Library> library_;
  std::atomic<const Library*> opened_ = nullptr;
};

}  // namespace feedline::decode
