// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/pixels/pixel_store.h"

namespace feedline::format {

// Pixels in memory, one copy for all processes of this user on this machine that keep the same ones. The memory has no
// name in any file system: the kernel frees it with the last process that has it, however that ends.
class PixelMemory {
 public:
  // Finds the copy that another process has, or begins one. budget: bytes that a new one may
  // grow to.
  // folder: where processes find each other; "": a private one of this user in /dev/shm, else in the temporary folder.
  static Result<std::unique_ptr<PixelMemory>> join(const PixelContents& contents, std::uint64_t budget,
                                                   const std::string& folder = "");
  ~PixelMemory();
  PixelMemory(const PixelMemory&) = delete;
  PixelMemory& operator=(const PixelMemory&) = delete;

  PixelStore& store() { return *store_; }

 private:
  PixelMemory(std::unique_ptr<PixelStore> store, std::string register_path, std::string line);

  std::unique_ptr<PixelStore> store_;
  std::string register_path_;  // empty: other processes cannot find this one
  std::string line_;           // of this process in it
};

}  // namespace feedline::format
