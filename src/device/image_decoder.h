// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline::device {

// Images for the rows of batches that are being filled, in a device's own memory until their batch is made
// (Finish::decoded): decoded there, or made on the host and brought. Of one loader. Each belongs to the place of a row,
// in memory of the device's allocator: it goes with the batch that is made of what lies there, or when there is another
// one for the place. Thread-safe.
class ImageDecoder {
 public:
  ImageDecoder() = default;
  virtual ~ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Decodes a file to (size.height, size.width, 3) bytes without gaps, and gives their address on the device as soon as
  // that has begun. `file` may go at once. nullopt: it is nothing for this decoder, or damaged; the host's decoder
  // knows. kStorage: the device has failed, or has no room (ENOMEM).
  virtual Result<std::optional<std::uint64_t>> decode(std::span<const std::byte> file, Size size,
                                                      const std::byte* row) = 0;
  // Takes a copy of what the host has made, and gives its address. `bytes` may go at once. kStorage: as above.
  virtual Result<std::uint64_t> bring(std::span<const std::byte> bytes, const std::byte* row) = 0;

  // How many images it has decoded, and how many were brought.
  struct Counts {
    std::uint64_t decoded = 0, brought = 0;
  };
  virtual Counts counts() const = 0;
  virtual std::string name() const = 0;  // of what decodes, with its version
  // Why nothing more can be decoded, for the training loop to hear of, whatever it does about bad samples.
  virtual std::optional<Error> failure() const = 0;
};

}  // namespace feedline::device
