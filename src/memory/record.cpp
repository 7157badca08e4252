// SPDX-License-Identifier: Apache-2.0
#include "memory/record.h"

#include <new>

namespace feedline::memory {

Result<std::span<std::byte>> ByteBuffer::make_room(std::uint64_t bytes, std::uint64_t most) {
  if (bytes > most) return too_large(bytes, most);
  if (bytes > capacity_) {
    data_.reset();  // before the new one, so that both never exist at once
    capacity_ = 0;
    data_.reset(new (std::nothrow) std::byte[bytes]);  // NOLINT: make_unique has no form that does not throw
    if (!data_) return data_error("no memory for the " + std::to_string(bytes) + " bytes of a sample", "storage");
    capacity_ = bytes;
  }
  return std::span(data_.get(), bytes);
}

}  // namespace feedline::memory
