// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace feedline {

// All stored bytes of one sample, for copying a dataset.
struct SampleFiles {
  struct File {
    std::string extension;  // without the dot; lower case for tar members
    std::vector<std::byte> bytes;
  };
  std::string key;                    // relative path without its extension, or WebDataset key
  std::optional<std::int64_t> label;  // the label, if no file contains it
  std::vector<File> files;            // in storage order
};

// The sizes of one sample's files, known without reading them, for planning a copy.
struct SampleFileSizes {
  struct File {
    std::string extension;
    std::uint64_t bytes = 0;
  };
  std::string key;
  std::optional<std::int64_t> label;
  std::vector<File> files;
};

}  // namespace feedline
