// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packs sequences of tokens (documents) into rows of equal length. The plan of an epoch depends only on the documents'
// lengths, the options, the seed and the epoch: it is the same on every rank.

#include <cstdint>
#include <string>
#include <vector>

namespace feedline {

enum class PackMethod : std::uint8_t {
  kBestFit,  // best-fit decreasing: whole documents, if they fit into a row
  kConcat,   // concatenates all documents of a window and cuts them at row ends
};

// The treatment of documents that are longer than a row.
enum class LongDocuments : std::uint8_t { kSplit, kTruncate, kDrop };

enum class PackLabels : std::uint8_t {
  kSame,       // equal to the tokens; -100 at each document's first token. The model shifts them
  kNextToken,  // the next token of the document; -100 at its last token
  // In both, the values of a field `labels` replace the tokens, and tokens that a field `loss_mask` excludes are -100.
};

struct PackOptions {
  std::string field = {};  // a ragged field of integers; empty: input_ids, or the only one
  std::uint64_t length = 8192;
  PackMethod method = PackMethod::kBestFit;
  LongDocuments overlong = LongDocuments::kSplit;
  std::uint64_t window = 65536;         // documents that are packed together
  std::uint64_t document_multiple = 1;  // each piece of a document is padded to a multiple of this many tokens
  PackLabels labels = PackLabels::kSame;
  std::int64_t pad = 0;          // token in the padding
  std::uint64_t vocabulary = 0;  // if not 0: a token that is not below it is an error
};

// Consecutive tokens of a document in one row.
struct PackPiece {
  std::uint64_t document = 0;
  std::uint64_t begin = 0;  // first token in the document
  std::uint32_t length = 0;
  bool continues = false;  // the document continues in another row
};

// The segments of a batch: the pieces of documents, with their padding, and the rest of each row that is not full.
struct PackSegments {
  std::uint64_t count = 0;
  std::uint64_t longest = 0;                  // tokens
  std::vector<std::uint64_t> documents = {};  // of the pieces, in the order of the rows
};

// The effect of packing on some documents.
struct PackCounts {
  std::uint64_t documents = 0;    // all, including the next three
  std::uint64_t empty = 0;        // without tokens: skipped
  std::uint64_t dropped = 0;      // longer than a row
  std::uint64_t truncated = 0;    // longer than a row
  std::uint64_t split = 0;        // in several rows
  std::uint64_t pieces = 0;       // in rows
  std::uint64_t tokens = 0;       // in rows
  std::uint64_t lost_tokens = 0;  // of dropped and truncated documents
  std::uint64_t packs = 0;        // rows
  PackCounts& operator+=(const PackCounts& other);
};

}  // namespace feedline
