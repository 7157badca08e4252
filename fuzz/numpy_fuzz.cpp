// SPDX-License-Identifier: Apache-2.0

// Any bytes as a .npy or .npz file: no crash, no read out of bounds, no excessive memory. Each array is in valid memory
// and has as many rows as reported.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/index/memory_reader.h"
#include "format/numpy_files/array_file.h"

using namespace feedline;

namespace {

// A storage with the bytes as its only object.
class OneObject final : public storage::Storage {
 public:
  explicit OneObject(std::string_view bytes) : bytes_(bytes) {}
  Result<std::unique_ptr<storage::Reader>> open(const std::string&, storage::Access) const override {
    return std::make_unique<format::MemoryReader>(bytes_);
  }
  Result<std::span<const std::byte>> read_all(const std::string&, memory::ByteBuffer&, std::uint64_t) const override {
    return storage_error("nobody asks", 0);
  }
  Result<std::vector<storage::Entry>> list(const std::string&) const override {
    return storage_error("nobody asks", 0);
  }
  Result<storage::ObjectStat> stat(const std::string&) const override { return storage::ObjectStat{bytes_.size(), 1}; }
  Result<bool> is_directory(const std::string&) const override { return false; }

 private:
  const std::string_view bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const OneObject storage({reinterpret_cast<const char*>(data), bytes});
  const auto file = format::open_array_file(storage, "fuzz.npz");
  if (!file) return 0;
  FEEDLINE_CHECK(!file->arrays.empty());
  for (const NamedArray& array : file->arrays) {
    std::uint8_t sum = 0;
    const std::size_t taken = array.rows * array.row.bytes();
    for (std::size_t i = 0; i < taken; ++i)
      sum ^= std::to_integer<std::uint8_t>(array.data[i]);  // reads every byte, for the sanitizers
    static volatile std::uint8_t sink;
    sink = sum;
    // a deflated member can be 1,032 times its stored size
    FEEDLINE_CHECK(taken <= 1032 * (bytes + 1));
  }
  return 0;
}
