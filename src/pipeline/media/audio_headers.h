// SPDX-License-Identifier: Apache-2.0
#pragma once

// The lengths of a source's audio files, from their headers. They are stored, so that later runs read no headers.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/entry_store.h"
#include "feedline/error.h"
#include "memory/record.h"
#include "pipeline/media/audio_source.h"
#include "storage/storage.h"

namespace feedline::pipeline {

struct AudioLength {
  std::uint32_t rate = 0;
  std::uint64_t frames = 0;
};

// Thread-safe.
class AudioHeaders {
 public:
  // Stores lengths in `directory` if it is not empty, else next to a local file, or in the user's cache folder.
  static std::shared_ptr<AudioHeaders> of_source(const storage::Storage& storage, const std::string& source,
                                                 const std::string& directory);
  // Only in memory.
  static std::shared_ptr<AudioHeaders> in_memory();

  // Returns the length of a stored file, reading its header if it is not known. Closes `source`, which is reused by one
  // thread. Errors: as for decode::open_audio and AudioSource::open.
  Result<AudioLength> find(const memory::Record::Field& stored, AudioSource& source);
  // Writes new lengths to their file if there are enough of them.
  void write();

 private:
  explicit AudioHeaders(std::vector<std::string> paths);

  cache::EntryStore store_;
};

}  // namespace feedline::pipeline
