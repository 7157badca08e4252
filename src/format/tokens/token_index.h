// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace feedline::format {

// Consecutive tokens of a file.
struct TokenRange {
  std::uint64_t first = 0, count = 0;
};

// Which tokens of a file each sample has. Immutable and thread-safe.
class TokenIndex {
 public:
  virtual ~TokenIndex() = default;

  virtual std::uint64_t samples() const = 0;
  virtual TokenRange range(std::uint64_t sample) const = 0;  // Requires: sample < samples()
  // Writes the number of tokens of each sample. Requires: both spans have the same length.
  virtual void lengths(std::span<const std::uint64_t> samples, std::span<std::uint64_t> lengths) const {
    for (std::size_t i = 0; i < samples.size(); ++i) lengths[i] = range(samples[i]).count;
  }
  // Multimodal indexes of Megatron have a mode per sample. Requires for mode(): has_modes().
  virtual bool has_modes() const { return false; }
  virtual std::int64_t mode(std::uint64_t /*sample*/) const { return 0; }
  // The contents of the index, for the fingerprint.
  virtual std::span<const std::byte> bytes() const = 0;
};

// The documents of a file, one after the other.
class DocumentEnds : public TokenIndex {
 public:
  std::uint64_t samples() const final { return samples_; }
  TokenRange range(std::uint64_t sample) const final {
    const std::uint64_t first = sample == 0 ? 0 : end_of(sample - 1);
    return {first, end_of(sample) - first};
  }
  std::span<const std::byte> bytes() const final { return {ends_, samples_ * sizeof(std::uint64_t)}; }

 protected:
  DocumentEnds() = default;
  // `ends`: the number of tokens up to the end of each document, as unaligned u64. Requires: they do not descend.
  void set(const std::byte* ends, std::uint64_t samples) {
    ends_ = ends;
    samples_ = samples;
  }
  std::uint64_t end_of(std::uint64_t sample) const {
    std::uint64_t end;
    std::memcpy(&end, ends_ + sample * sizeof(end), sizeof(end));
    return end;
  }

 private:
  const std::byte* ends_ = nullptr;
  std::uint64_t samples_ = 0;
};

}  // namespace feedline::format
