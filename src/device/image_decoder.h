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

// Provides images for rows of batches that are being filled. Images are decoded on the device, or decoded on the host
// and copied. The images stay in device memory until their batch is made (Finish::decoded). Each loader has its own
// decoder. Each image is identified by the address of its row, which is in memory from the device's allocator. An image
// is consumed by the batch that is made from that memory, or replaced by another image for the same address.
// Thread-safe.
class ImageDecoder {
 public:
  ImageDecoder() = default;
  virtual ~ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;

  // Starts decoding a file to (size.height, size.width, 3) contiguous bytes, and returns the device address of these
  // bytes. `file` may be freed when this call returns. Returns nullopt if the file is unsupported or damaged; the
  // host's decoder then reports errors. kStorage: the device has failed, or is out of memory (ENOMEM).
  virtual Result<std::optional<std::uint64_t>> decode(std::span<const std::byte> file, Size size,
                                                      const std::byte* row) = 0;
  // Copies an image decoded by the host, and returns its device address. `bytes` may be freed when this call returns.
  // kStorage: as for decode().
  virtual Result<std::uint64_t> bring(std::span<const std::byte> bytes, const std::byte* row) = 0;

  // The number of images decoded on the device, and the number copied from the host.
  struct Counts {
    std::uint64_t decoded = 0, brought = 0;
  };
  virtual Counts counts() const = 0;
  virtual std::string name() const = 0;  // of the decoder, with its version
  // Returns the error that stopped decoding, if any; it is reported to the training loop regardless of the policy for
  // bad samples.
  virtual std::optional<Error> failure() const = 0;
};

}  // namespace feedline::device
