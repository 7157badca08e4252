// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index of Megatron's token files. All numbers are little-endian and unaligned:
//
//   "MMIDIDX\0\0" | version 1 (u64) | dtype (u8) | S (u64) | D (u64)
//   lengths (i32 each, S) | byte offsets in the .bin file (i64, S) | documents (i64, D) | modes (i8, S), or nothing
//
// A sequence is `length` tokens. Document d consists of the sequences [documents[d], documents[d + 1]).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Returns whether these are the first bytes of an index.
bool begins_as_megatron_index(std::span<const std::byte> front);

// Immutable and thread-safe. A local index is mapped, a remote one is in memory.
class MegatronIndex {
 public:
  // Reads the whole index and checks it. Fails with kStorage if the file cannot be read, with kConfig if the tokens are
  // floats, and with kData if the index contradicts itself. The error has the location.
  static Result<MegatronIndex> open(const std::string& path, const storage::Storage& storage);

  DType dtype() const { return dtype_; }
  std::uint64_t sequences() const { return sequences_; }
  std::uint64_t documents() const { return documents_; }
  bool has_modes() const { return modes_ != nullptr; }
  // The functions below require a valid number of a sequence or document.
  std::uint64_t length(std::uint64_t sequence) const { return number_at<std::uint32_t>(lengths_, sequence); }
  std::uint64_t first_token(std::uint64_t sequence) const {
    return number_at<std::uint64_t>(offsets_, sequence) / token_bytes_;
  }
  std::int64_t mode(std::uint64_t sequence) const { return number_at<std::int8_t>(modes_, sequence); }
  // Returns the first sequence of a document, or the number of sequences if `document` is documents().
  std::uint64_t first_sequence(std::uint64_t document) const {
    return number_at<std::uint64_t>(documents_begin_, document);
  }
  std::uint64_t tokens() const { return tokens_; }    // up to the end of the last sequence in the .bin file
  std::uint64_t longest() const { return longest_; }  // tokens of the longest sequence
  std::uint64_t empty() const { return empty_; }      // sequences without tokens
  std::span<const std::byte> bytes() const { return bytes_; }

  // Checks that the sequences of each document are stored one after the other, so that a document can be read as one
  // sequence. kData: some are not.
  Result<void> check_documents_contiguous() const;
  // Returns a kData error with the location of the index.
  std::unexpected<Error> damaged(const std::string& what) const;

 private:
  template <typename T>
  static T number_at(const std::byte* numbers, std::uint64_t i) {
    T number;
    std::memcpy(&number, numbers + i * sizeof(T), sizeof(T));
    return number;
  }
  Result<void> read_header();
  Result<void> check_sequences();
  Result<void> check_documents() const;

  std::string path_;
  std::shared_ptr<const storage::Reader> reader_;         // owns the mapping
  std::shared_ptr<const std::vector<std::byte>> memory_;  // or the bytes
  std::span<const std::byte> bytes_;
  DType dtype_ = DType::kUint16;
  std::uint64_t token_bytes_ = 2;
  std::uint64_t sequences_ = 0, documents_ = 0, tokens_ = 0, longest_ = 0, empty_ = 0;
  const std::byte *lengths_ = nullptr, *offsets_ = nullptr, *documents_begin_ = nullptr, *modes_ = nullptr;
};

}  // namespace feedline::format
