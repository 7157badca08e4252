// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a scan notices about a source. `inspect` shows all of it; open() turns the first one of severity kError into
// its error, so that the two can never disagree about what is damaged.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/inspection.h"

namespace feedline::format {

enum class Severity : std::uint8_t {
  kNote,
  kWarning,  // a reader drops or merges something
  kError,    // reading fails
};

struct Finding {
  std::string_view code;  // stable; a literal
  Severity severity = Severity::kError;
  std::string shard;
  std::string key;
  std::optional<std::uint64_t> offset;  // in the shard
  std::string text;                     // one sentence: what, and what to do
};

// A note that a column of `source` was not opened.
Finding to_finding(const UnopenedColumn& column, const std::string& source);
// kData with the finding's place.
Error to_error(const Finding& finding);

// Keeps the first few of each code and counts the rest: a shard of a million odd members must not fill memory.
class Findings {
 public:
  void add(Finding finding);
  void add(Findings findings);
  const Finding* first_error() const;
  const std::vector<Finding>& kept() const { return kept_; }
  std::uint64_t count(std::string_view code) const;
  // Errors before warnings before notes, else in the order found; then one line per code of which some are not shown.
  std::vector<InspectionFinding> to_inspection() const;

 private:
  static constexpr std::uint64_t kKeptPerCode = 20;

  std::vector<Finding> kept_;
  std::map<std::string_view, std::uint64_t> counts_;
};

}  // namespace feedline::format
