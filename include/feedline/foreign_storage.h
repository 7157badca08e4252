// SPDX-License-Identifier: Apache-2.0
#pragma once

// Objects that the engine has no reader of its own for, and somebody else reads: a library of the user's, by the scheme
// of a URL.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

struct ForeignObject {
  std::string path;  // of a listing: relative to its folder
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;  // another one for every other version of the object; 0: not known
  bool is_folder = false;
};

// Immutable and thread-safe: threads of the engine call it, many at once, with no lock of theirs held, and wait. URLs
// are as the user has written them. Throws nothing.
class ForeignStorage {
 public:
  virtual ~ForeignStorage() = default;
  virtual std::string explain() const = 0;  // who reads, in a line
  // kStorage; ENOENT: it is not there.
  virtual Result<ForeignObject> stat(const std::string& url) const = 0;
  // Fills `out` from `offset`. Fewer bytes than asked for: the object ends there.
  virtual Result<std::size_t> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) const = 0;
  // What a folder holds, in any order; with what lies deeper, if `all`, and then without the folders themselves. Of
  // what is not there: nothing.
  virtual Result<std::vector<ForeignObject>> list(const std::string& url, bool all) const = 0;
};

// Who reads a scheme ("az"): nullptr: nobody. kConfig: somebody would, and something is missing.
using FindForeignStorage = std::function<Result<std::shared_ptr<const ForeignStorage>>(const std::string& scheme)>;
// Asked once for each scheme that the engine does not read itself, for as long as somebody is found. Once in a process,
// before anything is opened.
void set_foreign_storages(FindForeignStorage find);

}  // namespace feedline
