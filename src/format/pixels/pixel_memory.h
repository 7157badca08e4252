// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/pixels/pixel_store.h"

namespace feedline::format {

// Pixels in memory, shared by all processes of this user on this machine that cache the same pixels. The memory has no
// name in a file system, so the kernel frees it when the last process that maps it exits.
class PixelMemory {
 public:
  // Finds the pixels of another process, or allocates memory. `budget` is the maximum size of new memory in bytes.
  // `folder` is the folder through which processes find each other; if empty, a private folder of this user in /dev/shm
  // or in the temporary folder.
  static Result<std::unique_ptr<PixelMemory>> join(const PixelContents& contents, std::uint64_t budget,
                                                   const std::string& folder = "");
  ~PixelMemory();
  PixelMemory(const PixelMemory&) = delete;
  PixelMemory& operator=(const PixelMemory&) = delete;

  PixelStore& store() { return *store_; }

 private:
  PixelMemory(std::unique_ptr<PixelStore> store, std::string register_path, std::string line);

  std::unique_ptr<PixelStore> store_;
  std::string register_path_;  // empty if other processes cannot find this copy
  std::string line_;           // this process's line in the register
};

}  // namespace feedline::format
