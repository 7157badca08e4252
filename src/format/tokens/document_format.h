// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "feedline/dataset.h"
#include "format/filled_format.h"
#include "format/tokens/token_files.h"
#include "format/tokens/token_kernels.h"

namespace feedline::format {

// The positions of samples, which are documents or pieces of documents. The end of a file also ends a document.
//
//   a document of n tokens, including its separator:    |t t t t t t t t t t S|
//   piece 0, window + 1 tokens, the last one only a target:  |t t t t t|
//   piece 1 begins `stride` later:                                   |t t t t t|
//   the last piece ends with the document:                                   |t t S|
class DocumentIndex {
 public:
  DocumentIndex(std::uint64_t window, std::uint64_t stride, std::uint64_t shortest)
      : window_(window), stride_(stride), shortest_(shortest) {}

  // Adds a document with the tokens [first, last), counted from the start of the first file. Requires: ascending order.
  void add(std::uint64_t first, std::uint64_t last);
  void shrink();  // call after the last document

  std::uint64_t size() const { return first_.size(); }
  std::uint64_t first(std::uint64_t piece) const { return first_[piece]; }
  std::uint32_t tokens(std::uint64_t piece) const { return tokens_[piece]; }  // one more than the number of targets
  std::uint64_t before(std::uint64_t token) const;                            // pieces that begin before it
  std::uint64_t documents() const { return documents_; }                      // without those left out
  std::uint64_t left_out() const { return left_out_; }                        // documents that are too short
  std::uint64_t longest() const { return longest_; }                          // tokens of the longest piece

 private:
  std::uint64_t window_, stride_, shortest_;
  std::vector<std::uint64_t> first_;
  std::vector<std::uint32_t> tokens_;
  std::uint64_t documents_ = 0, left_out_ = 0, longest_ = 0;
};

// Token files in which each sample is a document or a piece of one. The fields are ragged "x", "y" (shifted by one
// token), and "length".
class DocumentFormat final : public FilledFormat {
 public:
  // Reads all files once. Requires: open_tokens() has checked the options. Fails with kConfig if the separator does not
  // occur or all documents are too short, and with kData if a token is not below options.vocabulary.
  static Result<std::shared_ptr<const RowFormat>> make(TokenFiles files, const TokenOptions& options);

  std::string_view name() const override { return "tokens"; }
  std::uint64_t size() const override { return index_.size(); }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::uint64_t length(std::uint64_t index, std::size_t /*field*/) const override { return index_.tokens(index) - 1; }
  std::uint64_t longest(std::size_t /*field*/) const override { return index_.longest() - 1; }
  std::vector<std::uint64_t> shard_ends() const override;
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  DocumentFormat(TokenFiles files, DocumentIndex index, const TokenOptions& options, Widen widen);
  // Returns the file of a sample, and its first token in that file.
  std::pair<std::size_t, std::uint64_t> find_sample(std::uint64_t sample) const;

  TokenFiles files_;
  std::vector<std::uint64_t> ends_;  // cumulative number of tokens, per file
  DocumentIndex index_;
  TokenOptions options_;
  Widen widen_;
  Element pad_, ignored_;  // in the delivered dtype
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
