// SPDX-License-Identifier: Apache-2.0

// Any bytes as an index of token files, of Megatron or of datatrove: no crash and no read out of bounds. Each sequence
// and document of an accepted index is inside the index's number of tokens.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "format/index/memory_reader.h"
#include "format/tokens/datatrove_index.h"
#include "format/tokens/megatron_index.h"

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
    return storage_error("not used", 0);
  }
  Result<std::vector<storage::Entry>> list(const std::string&) const override { return storage_error("not used", 0); }
  Result<storage::ObjectStat> stat(const std::string&) const override { return storage::ObjectStat{bytes_.size(), 1}; }
  Result<bool> is_directory(const std::string&) const override { return false; }

 private:
  const std::string_view bytes_;
};

void read_datatrove(const storage::Storage& storage) {
  const auto index = format::DatatroveIndex::open("fuzz.ds.index", storage);
  if (!index) return;
  std::uint64_t end = 0;
  for (std::uint64_t d = 0; d < (*index)->samples(); ++d) {
    const format::TokenRange range = (*index)->range(d);
    FEEDLINE_CHECK(range.first == end);
    end += range.count;
  }
  FEEDLINE_CHECK(end == (*index)->tokens());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const OneObject storage({reinterpret_cast<const char*>(data), bytes});
  read_datatrove(storage);
  const auto index = format::MegatronIndex::open("fuzz.idx", storage);
  if (!index) return 0;
  for (std::uint64_t i = 0; i < index->sequences(); ++i) {
    FEEDLINE_CHECK(index->first_token(i) + index->length(i) <= index->tokens());
    FEEDLINE_CHECK(index->length(i) <= index->longest());
    if (index->has_modes()) FEEDLINE_CHECK(index->mode(i) >= -128);
  }
  for (std::uint64_t d = 0; d < index->documents(); ++d) {
    FEEDLINE_CHECK(index->first_sequence(d) <= index->first_sequence(d + 1));
    FEEDLINE_CHECK(index->first_sequence(d + 1) <= index->sequences());
  }
  static_cast<void>(index->check_documents_contiguous());
  return 0;
}
